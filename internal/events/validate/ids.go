package validate

import "slices"

// ids are ids of calls or results, in their order. The cost of a look-up does not grow with
// their number.
type ids struct {
	list []string
	in   map[string]bool // once they are many
}

// fewIDs is how many are looked through.
const fewIDs = 16

func (s *ids) add(id string) {
	if s.list = append(s.list, id); len(s.list) == fewIDs {
		s.in = make(map[string]bool, 4*fewIDs)
		for _, x := range s.list {
			s.in[x] = true
		}
	} else if s.in != nil {
		s.in[id] = true
	}
}

func (s *ids) has(id string) bool {
	if s.in != nil {
		return s.in[id]
	}
	return slices.Contains(s.list, id)
}

// openCall is a call that has no result so far.
type openCall struct {
	id    string // which may be ""
	index int    // of its message
}

// openCalls are calls in their order, of which results take some away.
type openCalls struct {
	all   []openCall
	gone  []bool
	first int              // no call before it is open
	byID  map[string][]int // places of calls, the oldest first
}

func (o *openCalls) add(c openCall) {
	if o.byID == nil {
		o.byID = map[string][]int{}
	}
	o.byID[c.id] = append(o.byID[c.id], len(o.all))
	o.all, o.gone = append(o.all, c), append(o.gone, false)
}

// answer takes the oldest open call of an id away, and reports whether there was one.
func (o *openCalls) answer(id string) bool {
	places := o.byID[id]
	for len(places) > 0 && o.gone[places[0]] {
		places = places[1:]
	}
	if len(places) == 0 {
		return false
	}
	o.gone[places[0]] = true
	o.byID[id] = places[1:]
	return true
}

// answerAny takes the oldest open call away, and reports whether there was one.
func (o *openCalls) answerAny() bool {
	for ; o.first < len(o.all); o.first++ {
		if !o.gone[o.first] {
			o.gone[o.first] = true
			return true
		}
	}
	return false
}

// open lists the calls that no result took away.
func (o *openCalls) open() (out []openCall) {
	for i, c := range o.all {
		if !o.gone[i] {
			out = append(out, c)
		}
	}
	return out
}
