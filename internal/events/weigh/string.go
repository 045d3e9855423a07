package weigh

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Quoted is the JSON string that some bytes begin with.
type Quoted struct {
	// Len is its length in bytes, with both quotes; 0 when it is malformed.
	Len int
	// Size is that of the text it encodes, which has neither half surrogates nor bytes that are not UTF-8.
	Size Size
	// Long: an escape sequence of it is not the shortest for its character, as RFC 8785 has it.
	Long bool

	made [utf8.UTFMax]byte // a rune that an escape sequence encodes
}

// special marks the bytes of a string that are more than a character of ASCII: the
// quote, the backslash, controls, and bytes of longer runes.
const special = 1 << 7

// inString is the class of each byte in a JSON string, or special.
var inString = func() (t [256]class) {
	for i := range t {
		t[i] = classOf[i]
		if i < ' ' || i == '"' || i == '\\' || i >= utf8.RuneSelf {
			t[i] = special
		}
	}
	return t
}()

// String reads the JSON string that raw begins with and measures its text.
func String(raw []byte) (q Quoted) {
	if len(raw) == 0 || raw[0] != '"' {
		return q
	}
	var sum uint64
	last, short := newlines, 0 // short is how much the text is shorter than its encoding
	lines := int64(0)
	for i := 1; i < len(raw); {
		c := inString[raw[i]]
		if c < special {
			sum += steps[last<<4|c]
			last = c
			i++
			continue
		}
		switch b := raw[i]; {
		case b == '"':
			q.Len = i + 1
			q.Size = size(sum, i-1-short)
			q.Size.Newlines = lines
			return q
		case b == '\\':
			text, width := q.escape(raw[i:])
			if width == 0 {
				return q
			}
			if text[0] == '\n' {
				lines++
			}
			short += width - len(text)
			sum, last = pass(sum, last, text)
			i += width
		case b < ' ':
			return q
		default:
			_, width := utf8.DecodeRune(raw[i:])
			sum, last = pass(sum, last, raw[i:i+width])
			i += width
		}
	}
	return q
}

// Plain is the length of the JSON string that raw begins with if it is plain ASCII without
// escape sequences, else 0.
func Plain(raw []byte) int {
	if len(raw) == 0 || raw[0] != '"' {
		return 0
	}
	for i := 1; i < len(raw); i++ {
		if inString[raw[i]] == special {
			if raw[i] == '"' {
				return i + 1
			}
			break
		}
	}
	return 0
}

// Skip is [String] without the size.
func Skip(raw []byte) (q Quoted) {
	if len(raw) == 0 || raw[0] != '"' {
		return q
	}
	for i := 1; i < len(raw); {
		if inString[raw[i]] < special {
			i++
			continue
		}
		switch b := raw[i]; {
		case b == '"':
			q.Len = i + 1
			return q
		case b == '\\':
			_, width := q.escape(raw[i:])
			if width == 0 {
				return q
			}
			i += width
		case b < ' ':
			return q
		default:
			i++
		}
	}
	return q
}

// escape returns the text of the escape sequence at the start of b and its length, 0 for
// none.
func (q *Quoted) escape(b []byte) (text []byte, width int) {
	r, width := Unescape(b)
	q.Long = q.Long || width > 2 || width > 0 && b[1] == '/'
	return utf8.AppendRune(q.made[:0], r), width
}

// single maps the second byte of an escape sequence of two bytes to the character that it encodes.
var single = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// Unescape returns the character of the escape sequence at the start of s and its length, 0 for none. Half of
// a surrogate pair is U+FFFD.
func Unescape[S ~string | ~[]byte](s S) (r rune, width int) {
	if len(s) < 2 {
		return 0, 0
	}
	if c := single[s[1]]; c != 0 {
		return rune(c), 2
	}
	switch r = Escape(s); {
	case r < 0:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	if r = utf16.DecodeRune(r, Escape(s[6:])); r == utf8.RuneError {
		return r, 6
	}
	return r, 12
}

// Escape reads \uXXXX; it is -1 for anything else.
func Escape[S ~string | ~[]byte](s S) (r rune) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	for i := 2; i < 6; i++ {
		c := s[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
