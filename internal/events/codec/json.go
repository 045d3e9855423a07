package codec

import (
	"bytes"
	"errors"
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"compactd/internal/events/weigh"
)

// Raw is one JSON value as it came.
type Raw = jsontext.Value

// Kind is the first byte of a value: { [ " 0 t f n, and 0 for none.
type Kind = jsontext.Kind

// lenient reads values that agents pass through: text of models and tools, which may have half surrogates and
// duplicate keys.
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

// Marshal writes v, with the strings, numbers and keys of raw values unchanged. White space between their
// tokens is left out: the library has no option to keep it. Bytes that are not UTF-8 become U+FFFD, so that
// text quoted by an outcome cannot prevent it from being written. With an error the result is nil.
// See docs/adr/0018.
func Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v, verbatim)
	if err != nil {
		data, err = json.Marshal(v, verbatim, jsontext.AllowInvalidUTF8(true))
	}
	if err != nil {
		return nil, err // the library returns what it had written
	}
	return data, nil
}

// Unmarshal reads JSON written by compactd; unknown fields are ignored.
func Unmarshal(data []byte, v any) error {
	return json.Unmarshal(data, v, jsontext.AllowDuplicateNames(true))
}

// UnmarshalLenient reads a server's answer: half surrogates and broken UTF-8 become U+FFFD, unknown and
// duplicate fields are not errors.
func UnmarshalLenient(data []byte, v any) error { return json.Unmarshal(data, v, lenient) }

// UnmarshalStrict reads configuration: unknown and duplicate keys are errors.
func UnmarshalStrict(data []byte, v any) error {
	return json.Unmarshal(data, v, json.RejectUnknownMembers(true))
}

// MaxDepth bounds the nesting of an event. No agent comes near it, and recursion over
// messages cannot exhaust the stack.
const MaxDepth = 200

// TooDeep reports whether valid JSON nests deeper than MaxDepth.
func TooDeep(raw []byte) bool {
	if bytes.Count(raw, []byte{'['})+bytes.Count(raw, []byte{'{'}) <= MaxDepth {
		return false
	}
	depth := 0
	for w := Walk(raw); w.err == nil && w.at < len(raw); {
		switch w.raw[w.at] {
		case '"':
			w.skipString()
			continue
		case '[', '{':
			if depth++; depth > MaxDepth {
				return true
			}
		case ']', '}':
			depth--
		}
		w.at++
	}
	return false
}

// Clean returns valid JSON with half surrogates and broken UTF-8 as U+FFFD.
// Anything else stays byte for byte; without any, raw itself is returned.
func Clean(raw Raw) Raw {
	if utf8.Valid(raw) && !hasSurrogate(raw) {
		return raw
	}
	var out Raw
	kept := 0 // raw[:kept] is in out, or has been replaced there
	replace := func(from, to int, by string) {
		out = append(append(out, raw[kept:from]...), by...)
		kept = to
	}
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '\\':
			r, w := weigh.Unescape(raw[i:])
			if r == utf8.RuneError && utf16.IsSurrogate(weigh.Escape(raw[i:])) {
				replace(i, i+w, `\ufffd`)
			}
			i += max(w, 2)
		case c < utf8.RuneSelf:
			i++
		default:
			r, w := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && w == 1 {
				replace(i, i+1, "\uFFFD")
			}
			i += w
		}
	}
	if out == nil {
		return raw
	}
	return append(out, raw[kept:]...)
}

// hasSurrogate may be true without one: \ud000 to \ud7ff are whole characters. Most strings have no \u at
// all.
func hasSurrogate(raw []byte) bool {
	at := bytes.Index(raw, []byte(`\u`))
	return at >= 0 && (bytes.Contains(raw[at:], []byte(`\ud`)) || bytes.Contains(raw[at:], []byte(`\uD`)))
}

// Shortest returns valid JSON without white space between its tokens, and its strings with the
// fewest escapes.
func Shortest(raw Raw) Raw {
	out, err := jsontext.AppendFormat(nil, raw, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return raw
	}
	return out
}

// Quote writes s as a JSON string; broken UTF-8 becomes U+FFFD.
func Quote(s string) Raw { return AppendQuote(nil, s) }

// AppendQuote is Quote behind what out holds.
func AppendQuote[S string | []byte](out Raw, s S) Raw {
	out, _ = jsontext.AppendQuote(out, s) // its only error is broken UTF-8, which it replaces
	return out
}

// Text reads a JSON string; ok is false for any other type. Half surrogates
// and broken UTF-8 become U+FFFD.
func Text(raw Raw) (s string, ok bool) {
	n := len(raw)
	if n < 2 || raw[0] != '"' || raw[n-1] != '"' {
		return "", false
	}
	text := raw[1 : n-1]
	switch {
	case !utf8.Valid(text):
		return string(TextBytes(raw)), true
	case bytes.IndexByte(text, '\\') < 0:
		return string(text), true
	}
	var out strings.Builder // a long text is built once, without a copy
	out.Grow(len(text))
	for piece := range Pieces(raw) {
		out.Write(piece)
	}
	return out.String(), true
}

// Pieces lists the text of a JSON string of valid UTF-8, cut at its escape
// sequences: together the pieces are what [Text] returns. They may be parts of
// quoted, and must not be changed.
func Pieces(quoted Raw) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		text := quoted[1 : len(quoted)-1]
		for slash := bytes.IndexByte(text, '\\'); slash >= 0; slash = bytes.IndexByte(text, '\\') {
			if slash > 0 && !yield(text[:slash]) {
				return
			}
			text = text[slash:]
			r, width := weigh.Unescape(text)
			if width == 0 || !yield(encoded(r)) { // without a width it is no JSON
				return
			}
			text = text[width:]
		}
		if len(text) > 0 {
			yield(text)
		}
	}
}

// IsBlank reports whether a JSON string of valid UTF-8 is white space.
func IsBlank(quoted Raw) bool {
	for piece := range Pieces(quoted) {
		if len(bytes.TrimSpace(piece)) > 0 {
			return false
		}
	}
	return true
}

// ascii are the characters of ASCII by their codes.
var ascii = func() (t [utf8.RuneSelf]byte) {
	for i := range t {
		t[i] = byte(i)
	}
	return t
}()

// encoded is a character in UTF-8, of ASCII without an allocation.
func encoded(r rune) []byte {
	if r < utf8.RuneSelf {
		return ascii[r : r+1]
	}
	return utf8.AppendRune(nil, r)
}

// TextBytes is Text without a copy if the string has no escapes: then it is a part of raw. It is nil for
// anything but a string.
func TextBytes(raw Raw) []byte {
	n := len(raw)
	if n < 2 || raw[0] != '"' || raw[n-1] != '"' {
		return nil
	}
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return raw[1 : n-1]
	}
	b, _ := jsontext.AppendUnquote(nil, raw) // of a valid value its only error is what it replaces
	return b
}

// Integer reads an integer; numbers beyond int64 saturate, so that the caller's
// range refuses them. It is false for other types and for fractions.
func Integer(v Raw) (int64, bool) {
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(v), 64)
	switch {
	case v.Kind() != '0', err != nil && !errors.Is(err, strconv.ErrRange), f != math.Trunc(f):
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

// Units counts UTF-16 code units, the measure of the estimator.
func Units(s string) int {
	n := len(s)
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, w := utf8.DecodeRuneInString(s[i:])
		n += utf16.RuneLen(r) - w
		i += w
	}
	return n
}
