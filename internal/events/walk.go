package events

import (
	"bytes"
	"errors"
)

var (
	errNotObject = errors.New("not a JSON object")
	errNotArray  = errors.New("not a JSON array")
	errTrailing  = errors.New("data after the JSON value")
	errSyntax    = errors.New("not JSON")
)

// walker reads one JSON value in a single pass. What it returns are parts of
// the input, never copies: the input must not change afterwards. It trusts the
// input to be JSON, as [check] says: it looks at what stands between the values
// that it is asked for, and not into them. After an error its methods do nothing.
// Made where it is used, and not handed on, it costs no memory.
type walker struct {
	raw  Raw
	at   int
	err  error
	scan bool // texts of parts stay quoted
}

// end returns what was wrong, errTrailing where the one value was not all there is.
func (w *walker) end() error {
	if w.kind(); w.err == nil && w.at < len(w.raw) {
		return errTrailing
	}
	return w.err
}

// kind is that of the next value, or a punctuation mark; 0 at the end or after
// an error.
func (w *walker) kind() jsonKind {
	for w.err == nil && w.at < len(w.raw) {
		switch c := w.raw[w.at]; {
		case c == ' ', c == '\n', c == '\r', c == '\t':
			w.at++
		case c == '-', '0' <= c && c <= '9':
			return '0'
		default:
			return jsonKind(c)
		}
	}
	return 0
}

// value returns the next value.
func (w *walker) value() Raw {
	kind, start := w.kind(), w.at
	switch kind {
	case 0, ',', ':', ']', '}':
		return w.fail(errSyntax)
	case '"':
		w.skipString()
	case '{', '[':
		w.skipNested()
	default:
		for w.at < len(w.raw) && bytes.IndexByte([]byte(" \n\r\t,:]}"), w.raw[w.at]) < 0 {
			w.at++
		}
	}
	return w.from(start)
}

// skipString passes over the string at w.
func (w *walker) skipString() {
	for start := w.at; w.err == nil; {
		n := bytes.IndexByte(w.raw[w.at+1:], '"')
		if n < 0 {
			w.fail(errSyntax)
			return
		}
		w.at += 1 + n
		slash := w.at
		for slash > start && w.raw[slash-1] == '\\' {
			slash--
		}
		if (w.at-slash)%2 == 0 {
			w.at++
			return
		}
	}
}

// skipNested passes over the object or array at w.
func (w *walker) skipNested() {
	for depth := 0; w.err == nil && w.at < len(w.raw); {
		switch w.raw[w.at] {
		case '"':
			w.skipString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if w.at++; depth == 0 {
			return
		}
	}
	w.fail(errSyntax)
}

// object calls member for each key of the next value, duplicates included;
// member must consume exactly one value. It returns the whole object.
func (w *walker) object(member func(key []byte)) Raw {
	if w.kind() != '{' {
		return w.fail(errNotObject)
	}
	return w.list('}', func() {
		if w.kind() != '"' {
			w.fail(errSyntax)
			return
		}
		key := w.value()
		if w.kind() != ':' {
			w.fail(errSyntax)
			return
		}
		w.at++
		member(bare(key))
	})
}

// array calls element for each element of the next value; element must consume
// exactly one value. It returns the whole array.
func (w *walker) array(element func()) Raw {
	if w.kind() != '[' {
		return w.fail(errNotArray)
	}
	return w.list(']', element)
}

// list reads items up to a closing bracket, from behind the opening one.
func (w *walker) list(closing jsonKind, item func()) Raw {
	start := w.at
	w.at++
	for more := w.kind() != closing; more; {
		item()
		switch w.kind() {
		case ',':
			w.at++
		case closing:
			more = false
		default:
			return w.fail(errSyntax)
		}
	}
	w.at++
	return w.from(start)
}

func (w *walker) fail(err error) Raw {
	if w.err == nil {
		w.err = err
	}
	return nil
}

// from returns the input from start to where w is.
func (w *walker) from(start int) Raw {
	if w.err != nil {
		return nil
	}
	return w.raw[start:w.at:w.at]
}
