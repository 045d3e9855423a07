package codec

import (
	"bytes"
	"errors"
)

// ErrTrailing: data follows the JSON value.
var ErrTrailing = errors.New("data after the JSON value")

var (
	errNotObject = errors.New("not a JSON object")
	errNotArray  = errors.New("not a JSON array")
	errSyntax    = errors.New("not JSON")
)

// Walker reads one JSON value in a single pass. It returns parts of the input, never
// copies: the input must not change afterwards. It trusts the input to be JSON, as
// [Check] reports: it reads what is between the requested values, and not the values
// themselves. After an error its methods do nothing. A Walker that does not escape
// costs no memory.
type Walker struct {
	raw  Raw
	at   int
	err  error
	scan *Scan // nil trusts the input

	// OnMedia is called with the range of each value that may be inline media; nil is not.
	OnMedia func(from, to int)
}

// Walk returns a walker of a value.
func Walk(raw Raw) Walker { return Walker{raw: raw} }

// End returns the error, ErrTrailing if data follows the value.
func (w *Walker) End() error {
	if w.Kind(); w.err == nil && w.at < len(w.raw) {
		return ErrTrailing
	}
	return w.err
}

// Offset is the position in the input after the values read so far.
func (w *Walker) Offset() int { return w.at }

// Failed reports whether there was an error.
func (w *Walker) Failed() bool { return w.err != nil }

// Kind is the kind of the next value, or a punctuation mark; 0 at the end or after an error.
func (w *Walker) Kind() Kind {
	for w.err == nil && w.at < len(w.raw) {
		switch c := w.raw[w.at]; {
		case c == '-', '0' <= c && c <= '9':
			return '0'
		case c > ' ', c != ' ' && c != '\n' && c != '\r' && c != '\t':
			return Kind(c)
		default:
			w.at++
		}
	}
	return 0
}

// Value returns the next value.
func (w *Walker) Value() Raw {
	if w.scan != nil {
		return w.scanValue()
	}
	kind, start := w.Kind(), w.at
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
func (w *Walker) skipString() {
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
func (w *Walker) skipNested() {
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

// Object calls member for each key of the next value, duplicates included;
// member must consume exactly one value. It returns the whole object.
func (w *Walker) Object(member func(key []byte)) Raw {
	if w.Kind() != '{' {
		return w.fail(errNotObject)
	}
	if w.scan != nil {
		return w.scanObject(member)
	}
	return w.list('}', func() {
		if w.Kind() != '"' {
			w.fail(errSyntax)
			return
		}
		key := w.Value()
		if w.Kind() != ':' {
			w.fail(errSyntax)
			return
		}
		w.at++
		member(TextBytes(key))
	})
}

// Array calls element for each element of the next value; element must consume
// exactly one value. It returns the whole array.
func (w *Walker) Array(element func()) Raw {
	if w.Kind() != '[' {
		return w.fail(errNotArray)
	}
	if w.scan != nil {
		return w.scanArray(element)
	}
	return w.list(']', element)
}

// list reads items up to a closing bracket, from behind the opening one.
func (w *Walker) list(closing Kind, item func()) Raw {
	start := w.at
	w.at++
	for more := w.Kind() != closing; more; {
		item()
		switch w.Kind() {
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

func (w *Walker) fail(err error) Raw {
	if w.err == nil {
		w.err = err
	}
	return nil
}

// from returns the input from start to where w is.
func (w *Walker) from(start int) Raw {
	if w.err != nil {
		return nil
	}
	return w.raw[start:w.at:w.at]
}
