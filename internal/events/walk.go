package events

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	errNotObject = errors.New("not a JSON object")
	errNotArray  = errors.New("not a JSON array")
	errTrailing  = errors.New("data after the JSON value")
)

// walker reads one JSON value in a single pass. What it returns are parts of
// the input, never copies: the input must not change afterwards. After an error
// its methods do nothing.
type walker struct {
	raw Raw
	buf bytes.Buffer
	dec jsontext.Decoder
	err error
}

var walkers = sync.Pool{New: func() any { return new(walker) }}

// walk lets read consume raw, which must be exactly one JSON value.
func walk(raw Raw, read func(*walker)) error {
	w := walkers.Get().(*walker)
	defer w.release()
	w.raw, w.buf = raw, *bytes.NewBuffer(raw)
	w.dec.Reset(&w.buf, lenient)
	read(w)
	if w.err != nil {
		return w.err
	}
	if _, err := w.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

// release gives w back without keeping the input alive.
func (w *walker) release() {
	w.raw, w.buf, w.err = nil, bytes.Buffer{}, nil
	w.dec.Reset(&w.buf)
	walkers.Put(w)
}

// kind is that of the next value, 0 at an end or after an error.
func (w *walker) kind() jsonKind {
	if w.err != nil {
		return 0
	}
	return w.dec.PeekKind()
}

// value returns the next value.
func (w *walker) value() Raw {
	if w.err != nil {
		return nil
	}
	v, err := w.dec.ReadValue()
	if err != nil {
		w.err = err
		return nil
	}
	return w.from(w.offset() - len(v))
}

// object calls member for each key of the next value, duplicates included;
// member must consume exactly one value. It returns the whole object.
func (w *walker) object(member func(key []byte)) Raw {
	if w.kind() != '{' {
		return w.fail(errNotObject)
	}
	w.token()
	start := w.offset() - 1
	for w.err == nil && w.dec.PeekKind() != '}' {
		if key := w.value(); w.err == nil {
			member(bare(key))
		}
	}
	w.token()
	return w.from(start)
}

// array calls element for each element of the next value; element must consume
// exactly one value. It returns the whole array.
func (w *walker) array(element func()) Raw {
	if w.kind() != '[' {
		return w.fail(errNotArray)
	}
	w.token()
	start := w.offset() - 1
	for w.err == nil && w.dec.PeekKind() != ']' {
		element()
	}
	w.token()
	return w.from(start)
}

func (w *walker) token() {
	if w.err == nil {
		_, w.err = w.dec.ReadToken()
	}
}

func (w *walker) fail(err error) Raw {
	if w.err == nil {
		w.err = err
	}
	return nil
}

func (w *walker) offset() int { return int(w.dec.InputOffset()) }

// from returns the input from start to where w is.
func (w *walker) from(start int) Raw {
	if w.err != nil {
		return nil
	}
	end := w.offset()
	return w.raw[start:end:end]
}

// member is one key of an object with its value.
type member struct {
	name  string
	value Raw
}

// members lists an object's keys in their order, duplicates included. Values
// are parts of raw, not copies.
func members(raw Raw) ([]member, error) {
	var out []member
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
	out := Raw{'{'}
	for i, m := range ms {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, quote(m.name)...), ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
}

// array writes elements in their order.
func array(elems []Raw) Raw {
	out := Raw{'['}
	for i, e := range elems {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, ']')
}
