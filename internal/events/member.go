package events

import (
	"iter"
	"slices"
)

// member is one key of an object with its value.
type member struct {
	name  string
	value Raw
}

// members lists an object's keys in their order, duplicates included. Values
// are parts of raw, not copies.
func members(raw Raw) ([]member, error) { return appendMembers(make([]member, 0, 4), raw) }

// appendMembers is members into a room of the caller's, which costs no memory where
// the list is not handed on.
func appendMembers(out []member, raw Raw) ([]member, error) {
	w := walker{raw: raw}
	w.object(func(key []byte) { out = append(out, member{nameOf(key), w.value()}) })
	return out, w.end()
}

// fewMembers is more than most objects have.
const fewMembers = 12

// marked lists members, and whether their name came before.
func marked(ms []member) iter.Seq2[member, bool] {
	return func(yield func(member, bool) bool) {
		var seen map[string]bool // of a few a look at each is quicker
		if len(ms) > fewMembers {
			seen = make(map[string]bool, len(ms))
		}
		for i, m := range ms {
			twice := seen[m.name]
			if seen == nil {
				twice = slices.ContainsFunc(ms[:i], func(x member) bool { return x.name == m.name })
			} else {
				seen[m.name] = true
			}
			if !yield(m, twice) {
				return
			}
		}
	}
}

// elements lists an array's elements as parts of raw.
func elements(raw Raw) ([]Raw, error) {
	out := []Raw{}
	w := walker{raw: raw}
	w.array(func() { out = append(out, w.value()) })
	return out, w.end()
}

// nameOf is the name of a key, of the usual ones without a copy.
func nameOf(key []byte) string {
	switch string(key) {
	case "role":
		return "role"
	case "content":
		return "content"
	case "type":
		return "type"
	case "text":
		return "text"
	case "id":
		return "id"
	case "name":
		return "name"
	case "messages":
		return "messages"
	case "model":
		return "model"
	case "turn":
		return "turn"
	case "usage":
		return "usage"
	case "generation":
		return "generation"
	case "provider":
		return "provider"
	case "input_tokens":
		return "input_tokens"
	case "output_tokens":
		return "output_tokens"
	case "max_output_tokens":
		return "max_output_tokens"
	case "format":
		return "format"
	case "cache_creation_input_tokens":
		return "cache_creation_input_tokens"
	case "cache_read_input_tokens":
		return "cache_read_input_tokens"
	}
	return string(key)
}

// set gives name a value, at its place if it is there.
func set(ms []member, name string, value Raw) []member {
	found := false
	for i := range ms {
		if ms[i].name == name {
			ms[i].value, found = value, true
		}
	}
	if !found {
		ms = append(ms, member{name, value})
	}
	return ms
}

// lookup returns the value of name, nil when it is absent. The last duplicate
// wins, as with most readers of JSON.
func lookup(ms []member, name string) Raw {
	for _, m := range slices.Backward(ms) {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// withMember returns the object raw with the value of name set, at its place if
// it was there. The values of all other members keep their bytes.
func withMember(raw Raw, name string, value Raw) (Raw, error) {
	out, found := append(make(Raw, 0, len(value)+128), '{'), false
	w := walker{raw: raw}
	w.object(func(key []byte) {
		v := w.value()
		if string(key) == name {
			v, found = value, true
		}
		out = appendMember(out, key, v)
	})
	if err := w.end(); err != nil {
		return nil, err
	}
	if !found {
		out = appendMember(out, name, value)
	}
	return append(out, '}'), nil
}

// appendWithText writes the object raw with a text as the value of name, as
// [withMember] does.
func appendWithText(out Raw, raw Raw, name, text string) (Raw, error) {
	found, first := false, len(out)+1
	out = append(out, '{')
	w := walker{raw: raw}
	w.object(func(key []byte) {
		v := w.value()
		if len(out) > first {
			out = append(out, ',')
		}
		if out = append(appendName(out, key), ':'); string(key) == name {
			out, found = appendQuote(out, text), true
		} else {
			out = append(out, v...)
		}
	})
	err := w.end()
	if !found && err == nil {
		if len(out) > first {
			out = append(out, ',')
		}
		out = appendQuote(append(appendName(out, name), ':'), text)
	}
	return append(out, '}'), err
}

// object writes members in their order.
func object(ms []member) Raw {
	size := 2
	for _, m := range ms {
		size += len(m.name) + len(m.value) + len(`"":,`)
	}
	out := append(make(Raw, 0, size), '{')
	for _, m := range ms {
		out = appendMember(out, m.name, m.value)
	}
	return append(out, '}')
}

// appendMember writes a member of the object that out begins with.
func appendMember[S string | []byte](out Raw, name S, value Raw) Raw {
	if len(out) > 1 {
		out = append(out, ',')
	}
	return append(append(appendName(out, name), ':'), value...)
}

// appendName is appendQuote for a key, most of which need no look at what to escape.
func appendName[S string | []byte](out Raw, name S) Raw {
	for i := range len(name) {
		if c := name[i]; c != '_' && (c < 'a' || c > 'z') {
			return appendQuote(out, name)
		}
	}
	return append(append(append(out, '"'), name...), '"')
}

// array writes elements in their order.
func array(elems []Raw) Raw {
	size := 2
	for _, e := range elems {
		size += len(e) + 1
	}
	out := append(make(Raw, 0, size), '[')
	for i, e := range elems {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}
