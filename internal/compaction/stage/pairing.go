package stage

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// Pairing has the calls and results of a history that belong together.
//
// An exchange begins at an assistant message that follows another role. In openai each
// assistant message begins one, since results must follow their own; in neurolink so do
// words of the assistant, since none may come between a call and its result: see
// [dialect.Exchange]. An entry
// that is not rendered belongs to the exchange around it.
type Pairing struct {
	// Other has for each entry the position of its counterpart: the call of a result, the last result of a
	// call; −1 without one. A result pairs with a call of the same exchange: by id, or if either has none by
	// the tool, or by order. In neurolink a result without id that finds no call belongs to the call or
	// result before it. A result of a provider's own tool in a later message than its call pairs with it by
	// id.
	Other []int32

	halves   int   // pairs of the provider's own tools that are not together
	lone     []int // rendered calls and results without a counterpart
	unpaired int   // number of these
	last     int   // beginning of the last exchange
}

// Pair finds the pairs. Its cost for an entry does not depend on the number of calls in an exchange.
func Pair(entries []measure.Entry, f events.Format) *Pairing {
	p := &Pairing{}
	p.find(entries, f)
	return p
}

// find sets p to the pairs of entries.
func (p *Pairing) find(entries []measure.Entry, f events.Format) {
	p.Other = slices.Grow(p.Other[:0], len(entries))[:len(entries)]
	p.lone, p.unpaired, p.last, p.halves = p.lone[:0], 0, 0, 0
	calls := openCalls{entries: entries, other: p.Other}
	var hosted map[dialect.Key]int // calls of the provider's own tools that are open
	d, before := f.Dialect(), -1   // the entry rendered before
	for i := range entries {
		e := &entries[i]
		p.Other[i] = -1
		if e.Flags.Has(measure.FlagEmpty) {
			continue
		}
		if e.Role == measure.RoleAssistant && before >= 0 && begins(entries, d.Exchange, before, i) {
			p.last, calls.oldest, calls.index, calls.indexed = i, i, nil, i
		}
		switch e.Kind {
		case measure.KindWords:
			if half := e.HostedHalf(); half > 0 {
				if p.halves++; hosted == nil {
					hosted = map[dialect.Key]int{}
				}
				p.joinHosted(i, e.Call, half == dialect.HostedCall, hosted)
			}
		case measure.KindCall:
			p.unpaired++
		case measure.KindResult:
			p.join(i, calls.of(i))
			if d.Anonymous && e.Call == 0 && p.Other[i] < 0 {
				p.follow(entries, i, before)
			}
			if p.Other[i] < 0 {
				p.unpaired++
			}
		}
		before = i
	}
	for i := len(entries) - 1; len(p.lone) < p.unpaired; i-- { // most are at the end
		if e := &entries[i]; p.Other[i] < 0 && (e.Kind == measure.KindCall || e.Kind == measure.KindResult) && !e.Flags.Has(measure.FlagEmpty) {
			p.lone = append(p.lone, i)
		}
	}
	slices.Reverse(p.lone)
}

// join pairs a result with a call, unless there is none.
func (p *Pairing) join(result, call int) {
	if call < 0 {
		return
	}
	if p.Other[call] < 0 {
		p.unpaired--
	}
	p.Other[result], p.Other[call] = int32(call), int32(result)
}

// joinHosted pairs a result of a provider's own tool with its open call, wherever that is.
func (p *Pairing) joinHosted(i int, id dialect.Key, call bool, open map[dialect.Key]int) {
	if call {
		open[id] = i
	} else if at, ok := open[id]; ok {
		p.Other[i], p.Other[at] = int32(at), int32(i)
		delete(open, id)
	}
}

// follow joins a result with the entry before it, if that is of a tool: with the call, with the call of
// another result, or with that result alone.
func (p *Pairing) follow(entries []measure.Entry, result, before int) {
	if before < 0 || entries[before].Kind != measure.KindCall && entries[before].Kind != measure.KindResult {
		return
	}
	p.Other[result] = int32(before)
	if call := int(p.Other[before]); call >= 0 && entries[call].Kind == measure.KindCall {
		p.join(result, call)
	}
}

// exchanges returns for each entry the beginning of its exchange.
func exchanges(entries []measure.Entry, f events.Format) []int {
	out := make([]int, len(entries))
	d, start, last := f.Dialect(), 0, -1
	for i := range entries {
		if !entries[i].Flags.Has(measure.FlagEmpty) {
			if last >= 0 && begins(entries, d.Exchange, last, i) {
				start = i
			}
			last = i
		}
		out[i] = start
	}
	return out
}

// begins reports whether entry i, rendered after entry last, begins an exchange.
func begins(entries []measure.Entry, by dialect.Exchange, last, i int) bool {
	before, e := &entries[last], &entries[i]
	switch {
	case e.Role != measure.RoleAssistant:
		return false
	case before.Role != measure.RoleAssistant:
		return true
	case by == dialect.ByMessage:
		return !before.SameMessage(e)
	case by == dialect.ByWords:
		next := i + 1
		return e.Kind == measure.KindWords && (next == len(entries) || !e.SameMessage(&entries[next]))
	default:
		return false
	}
}

// openCalls finds the calls of an exchange without a result.
type openCalls struct {
	entries []measure.Entry
	other   []int32 // as far as it is known

	oldest int // no call of the exchange before it is open

	// An index of the exchange up to an entry, made when a search would be long: an agent may send a hundred
	// thousand calls in a turn.
	index   map[name][]int
	indexed int
}

// of returns the open call that the result at position i answers, −1 for none: the oldest with its id, else
// the oldest without one; for a result without id the oldest of its tool, else the oldest of all.
func (c *openCalls) of(i int) int {
	e := &c.entries[i]
	for c.oldest < i && !c.open(c.oldest) {
		c.oldest++
	}
	switch {
	case c.oldest == i:
		return -1
	case e.Call != 0:
		if call := c.find(name{key: e.Call}, i); call >= 0 {
			return call
		}
		return c.find(name{}, i)
	case e.Tool != 0:
		if call := c.find(name{true, e.Tool}, i); call >= 0 {
			return call
		}
	}
	return c.oldest
}

func (c *openCalls) open(i int) bool {
	e := &c.entries[i]
	return e.Kind == measure.KindCall && !e.Flags.Has(measure.FlagEmpty) && c.other[i] < 0
}

// find returns the oldest open call of a name before position i, or −1.
func (c *openCalls) find(n name, i int) int {
	if i-c.oldest > maxScan {
		return c.lookUp(n, i)
	}
	for k := c.oldest; k < i; k++ {
		if n.of(&c.entries[k]) && c.open(k) {
			return k
		}
	}
	return -1
}

// lookUp is find by the index.
func (c *openCalls) lookUp(n name, i int) int {
	if c.index == nil {
		c.index = map[name][]int{}
	}
	for ; c.indexed < i; c.indexed++ {
		if e := &c.entries[c.indexed]; e.Kind == measure.KindCall {
			for _, n := range []name{{false, e.Call}, {true, e.Tool}} {
				c.index[n] = append(c.index[n], c.indexed)
			}
		}
	}
	calls := c.index[n]
	for len(calls) > 0 && !c.open(calls[0]) {
		calls = calls[1:]
		c.index[n] = calls
	}
	if len(calls) == 0 {
		return -1
	}
	return calls[0]
}

// name is the search key of a call: its id, or its tool.
type name struct {
	tool bool
	key  dialect.Key
}

// of reports whether a call has the name.
func (n name) of(e *measure.Entry) bool {
	if n.tool {
		return e.Tool == n.key
	}
	return e.Call == n.key
}

// maxScan bounds a search for a call without an index, in entries.
const maxScan = 32
