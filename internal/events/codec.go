package events

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The JSON library stands behind this file and the type [Raw]: it has no tagged
// release yet, and must be easy to replace.

// Raw is one JSON value as it came.
type Raw = jsontext.Value

// lenient reads what agents pass through: text of models and tools, which may
// hold half surrogates and duplicate keys.
var lenient = json.JoinOptions(
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
)

// verbatim writes raw values as they are.
var verbatim = json.JoinOptions(
	jsontext.AllowDuplicateNames(true),
	jsontext.PreserveRawStrings(true),
	json.Deterministic(true),
)

// Marshal writes v, with raw values as they are.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, verbatim) }

// Unmarshal reads what compactd itself wrote; unknown fields are ignored.
func Unmarshal(data []byte, v any) error {
	return json.Unmarshal(data, v, jsontext.AllowDuplicateNames(true))
}

// UnmarshalStrict reads configuration: unknown and duplicate keys are errors.
func UnmarshalStrict(data []byte, v any) error {
	return json.Unmarshal(data, v, json.RejectUnknownMembers(true))
}

// clean returns raw with half surrogates and broken UTF-8 as U+FFFD. Anything
// else stays byte for byte.
func clean(raw Raw) Raw {
	if utf8.Valid(raw) && !hasSurrogate(raw) {
		return raw
	}
	if raw.IsValid(jsontext.AllowDuplicateNames(true)) {
		return raw
	}
	out, err := jsontext.AppendFormat(nil, raw, lenient)
	if err != nil {
		return raw // not JSON at all: the caller has checked before
	}
	return out
}

func hasSurrogate(raw []byte) bool {
	return bytes.Contains(raw, []byte(`\ud`)) || bytes.Contains(raw, []byte(`\uD`))
}

// member is one key of an object with its value.
type member struct {
	name  string
	value Raw
}

var errNotObject = errors.New("not a JSON object")

// members lists an object's keys in their order, duplicates included. Values
// are parts of raw, not copies.
func members(raw Raw) ([]member, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), lenient)
	if d.PeekKind() != '{' {
		return nil, errNotObject
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var out []member
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		v, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = v.Clone()
		out = append(out, m)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	if d.PeekKind() != 0 {
		return out, errTrailing
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return out, errTrailing
	}
	return out, nil
}

var errTrailing = errors.New("data after the JSON object")

// withMember returns the object raw with the value of name set, at its place if
// it was there. All other members keep their bytes.
func withMember(raw Raw, name string, value Raw) (Raw, error) {
	ms, err := members(raw)
	if err != nil {
		return nil, err
	}
	found := false
	for i := range ms {
		if ms[i].name == name {
			ms[i].value, found = value, true
		}
	}
	if !found {
		ms = append(ms, member{name, value})
	}
	return object(ms), nil
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

// quote writes s as a JSON string; broken UTF-8 becomes U+FFFD.
func quote(s string) Raw {
	out, _ := jsontext.AppendQuote(nil, s) // its only error is broken UTF-8, which it replaces
	return out
}

// unquote reads a JSON string; ok is false for any other type.
func unquote(raw Raw) (s string, ok bool) {
	if raw.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, raw)
	if err != nil && !utf8.Valid(raw) && !hasSurrogate(raw) {
		return "", false
	}
	return string(b), true
}

// Units counts UTF-16 code units, the measure of the estimator.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x10000 {
			n++
		}
	}
	return n
}
