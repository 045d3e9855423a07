package codec

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Strict reads one JSON value in a single pass, as providers do: half surrogates and broken
// UTF-8 are errors, duplicate keys are not. It is the library's decoder and shares nothing
// with [Walker], so that what one reads can be checked by the other.
//
// Its methods read the next value. One of another type than a method is for is passed over,
// and Wrong is set; null is passed over without it. After an error they do nothing.
type Strict struct {
	Wrong bool // a value was of another type than was requested

	dec *jsontext.Decoder
	err error
}

// ReadStrict calls read with a reader that is before the one value of raw. It returns an
// error unless that is valid JSON to its end, and nothing follows it.
func ReadStrict(raw Raw, read func(*Strict)) error {
	d := decoders.Get().(*decoder)
	defer func() {
		d.buf = bytes.Buffer{} // the input is not kept alive
		d.dec.Reset(&d.buf)
		decoders.Put(d)
	}()
	d.buf = *bytes.NewBuffer(raw)
	d.dec.Reset(&d.buf, jsontext.AllowDuplicateNames(true))
	s := Strict{dec: &d.dec}
	if read(&s); s.err != nil {
		return s.err
	}
	if _, err := d.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return ErrTrailing
	}
	return nil
}

// Kind is that of the next value, 0 where there is none.
func (s *Strict) Kind() Kind {
	if s.err != nil {
		return 0
	}
	return s.dec.PeekKind()
}

// Skip passes over the next value and returns its kind.
func (s *Strict) Skip() Kind {
	k := s.Kind()
	if s.err == nil {
		s.err = s.dec.SkipValue()
	}
	return k
}

// String returns a string.
func (s *Strict) String() string {
	if !s.is('"') {
		return ""
	}
	return string(TextBytes(s.value()))
}

// Quoted returns a string as it is written. It is valid until the next call of a method.
func (s *Strict) Quoted() Raw {
	if !s.is('"') {
		return nil
	}
	return s.value()
}

// Bool returns a Boolean.
func (s *Strict) Bool() bool {
	switch s.Kind() {
	case 't', 'f':
		return s.Skip() == 't'
	default:
		s.is('t')
		return false
	}
}

// Object calls member for each key; member must read exactly one value, and the key is valid
// until it does. It reports whether there is an object.
func (s *Strict) Object(member func(key []byte)) bool {
	if !s.is('{') {
		return false
	}
	s.token()
	for s.err == nil && s.dec.PeekKind() != '}' {
		if key := TextBytes(s.value()); s.err == nil {
			member(key)
		}
	}
	s.token()
	return true
}

// Array calls element for each element; element must read exactly one value. It reports
// whether there is an array.
func (s *Strict) Array(element func()) bool {
	if !s.is('[') {
		return false
	}
	s.token()
	for s.err == nil && s.dec.PeekKind() != ']' {
		element()
	}
	s.token()
	return true
}

// is reports whether the next value is of a kind, and passes over one that is not.
func (s *Strict) is(k Kind) bool {
	switch next := s.Kind(); {
	case next == k:
		return true
	default:
		s.Wrong = s.Wrong || next != 'n'
		s.Skip()
		return false
	}
}

func (s *Strict) token() {
	if s.err == nil {
		_, s.err = s.dec.ReadToken()
	}
}

func (s *Strict) value() (v Raw) {
	if s.err == nil {
		v, s.err = s.dec.ReadValue()
	}
	return v
}
