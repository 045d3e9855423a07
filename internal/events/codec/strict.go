package codec

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Strict is an object as a provider reads it, in a single pass: half surrogates and broken UTF-8 are errors,
// duplicate keys are not, and the last one counts. Members that T does not have are skipped, and null is
// absent. It is the library's decoder and shares nothing with [Walker], so that one can check the other.
type Strict[T any] struct {
	Of  T
	Bad bool // it is not an object, or has a member of another type: Of has the members before that
}

// ReadStrict reads an object, which is bad too where it is not valid JSON to its end.
func ReadStrict[T any](raw Raw) (out Strict[T]) {
	if json.Unmarshal(raw, &out, jsontext.AllowDuplicateNames(true)) != nil {
		out.Bad = true
	}
	return out
}

// UnmarshalJSONFrom reads an object. An error in it does not end the reading of the one around it.
func (s *Strict[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*s = Strict[T]{}
	if s.Bad = d.PeekKind() != '{'; s.Bad {
		return d.SkipValue()
	}
	depth := d.StackDepth()
	if s.Bad = json.UnmarshalDecode(d, &s.Of) != nil; !s.Bad {
		return nil
	}
	for d.StackDepth() > depth {
		var err error
		if k := d.PeekKind(); k == '}' || k == ']' {
			_, err = d.ReadToken()
		} else {
			err = d.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Type is the type of any value; 0 is absent.
type Type Kind

// UnmarshalJSONFrom passes over the value.
func (t *Type) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*t = Type(d.PeekKind())
	return d.SkipValue()
}

// Inner is a member that is an object or null.
type Inner[T any] struct {
	Type Type // of the member
	Of   T
}

// UnmarshalJSONFrom reads the member.
func (m *Inner[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*m = Inner[T]{Type: Type(d.PeekKind())}
	return json.UnmarshalDecode(d, &m.Of)
}

// Is reports whether the member is an object.
func (m *Inner[T]) Is() bool { return m.Type == '{' }

// Content is a member that is a text or a list.
type Content[T any] struct {
	Type Type  // of the member, which may be any
	Text Words // of a text
	List []T
}

// UnmarshalJSONFrom reads the member.
func (c *Content[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*c = Content[T]{Type: Type(d.PeekKind())}
	switch c.Type {
	case '"':
		return json.UnmarshalDecode(d, &c.Text)
	case '[':
		return json.UnmarshalDecode(d, &c.List)
	}
	return d.SkipValue()
}

// Empty reports whether it is a list without elements.
func (c *Content[T]) Empty() bool { return c.Type == '[' && len(c.List) == 0 }

// Words is the content of a text, as far as rules need it.
type Words int8

// The words of a text.
const (
	Absent Words = iota
	Null
	Blank // white space alone
	Some
)

var errNoText = errors.New("not a text")

// UnmarshalJSONFrom reads a text.
func (w *Words) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	switch {
	case err != nil:
		return err
	case v.Kind() == 'n':
		*w = Null
	case v.Kind() != '"':
		return errNoText
	case IsBlank(v):
		*w = Blank
	default:
		*w = Some
	}
	return nil
}
