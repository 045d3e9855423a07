package events

import "slices"

// member is one key of an object with its value.
type member struct {
	name  string
	value Raw
}

// members lists an object's keys in their order, duplicates included. Values
// are parts of raw, not copies.
func members(raw Raw) ([]member, error) {
	out := make([]member, 0, 8) // few have more
	err := walk(raw, func(w *walker) {
		w.object(func(key []byte) { out = append(out, member{string(key), w.value()}) })
	})
	return out, err
}

// elements lists an array's elements as parts of raw.
func elements(raw Raw) ([]Raw, error) {
	out := []Raw{}
	err := walk(raw, func(w *walker) {
		w.array(func() { out = append(out, w.value()) })
	})
	return out, err
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
	ms, err := members(raw)
	if err != nil {
		return nil, err
	}
	return object(set(ms, name, value)), nil
}

// object writes members in their order.
func object(ms []member) Raw {
	size := 2
	for _, m := range ms {
		size += len(m.name) + len(m.value) + len(`"":,`)
	}
	out := append(make(Raw, 0, size), '{')
	for i, m := range ms {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendQuote(out, m.name), ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
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
