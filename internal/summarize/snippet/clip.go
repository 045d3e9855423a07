package snippet

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"compactd/internal/events/codec"
	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/sanitize"
)

// Bounds of one line, in UTF-16 units.
const (
	SentenceUnits = 300
	IdentUnits    = 64
	Ellipsis      = "…"
	MaxScanned    = 1 << 20 // bytes of one text that are split into sentences
	ImagePlace    = "[image]"
	DocumentPlace = "[document]"
	base64Prefix  = ";base64,"
	escape        = '\x1b'
)

// Clip returns s as one line of at most n units: runs of white space become one
// space, control characters and invisible marks go, and a text that is longer
// ends in an ellipsis. It reads no more of s than it needs.
func Clip(s string, n int) string {
	s = WithoutData(s)
	var b strings.Builder
	b.Grow(min(len(s), n+8))
	units, fits := 0, 0 // fits is the length of b that leaves a unit for the ellipsis
	gap := false
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == escape:
			i += max(1, sanitize.EscapeLen(s[i:]))
			continue
		case unicode.IsSpace(r) || r == '\u2028' || r == '\u2029':
			gap = b.Len() > 0
			i += w
			continue
		case hidden(r):
			i += w
			continue
		}
		i += w
		need := utf16.RuneLen(r)
		if gap {
			need++
		}
		if units+need > n {
			if n < 1 {
				return ""
			}
			return b.String()[:fits] + Ellipsis
		}
		if gap {
			b.WriteByte(' ')
			gap = false
		}
		b.WriteRune(r) // broken UTF-8 becomes U+FFFD
		if units += need; units < n {
			fits = b.Len()
		}
	}
	return b.String()
}

// Plain is clip without a bound.
func Plain(s string) string { return Clip(s, len(s)+1) }

// hidden reports what no reader sees, but a model reads: control characters, marks
// that turn the direction of text, and tag characters.
func hidden(r rune) bool {
	return unicode.IsControl(r) || r == '\u200b' || r == '\ufeff' ||
		r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r >= 0xE0000 && r <= 0xE007F
}

var dataURL = lazyregexp.New(`data:([a-z]+)/[\w.+-]+;base64,[A-Za-z0-9+/]*={0,2}`)

// WithoutData replaces data URLs, which no reader can read, by the name of what
// they hold.
func WithoutData(s string) string {
	if !strings.Contains(s, base64Prefix) {
		return s
	}
	return dataURL().ReplaceAllStringFunc(s, func(u string) string {
		if strings.HasPrefix(u, "data:image/") {
			return ImagePlace
		}
		return DocumentPlace
	})
}

// The tags around a summary in a message.
const (
	OpenTag  = "<condensed-summary>"
	CloseTag = "</condensed-summary>"
)

// TextCost is what a line of the text costs in the message, its newline included.
func TextCost(s string) int { return codec.Units(s) + 1 + 3*Tags(s) }

// Tags counts what [events.Summary.Message] escapes, at 3 units each.
func Tags(s string) int {
	if !strings.Contains(s, "condensed-summary>") {
		return 0
	}
	return strings.Count(s, OpenTag) + strings.Count(s, CloseTag)
}

// StripInvisible removes terminal sequences and the characters that no reader sees, and that
// could hide a word from a search. White space stays.
func StripInvisible(s string) string {
	if !strings.ContainsFunc(s, invisible) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == escape:
			i += max(1, sanitize.EscapeLen(s[i:]))
			continue
		case !invisible(r):
			b.WriteString(s[i : i+w])
		}
		i += w
	}
	return b.String()
}

func invisible(r rune) bool { return hidden(r) && !unicode.IsSpace(r) }

// CutMiddle keeps a third of n bytes from the head of a text and the rest from
// its end, where outputs have their results, and reports how much is left out.
func CutMiddle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	first := Head(s, n/3)
	last := s[len(s)-(n-n/3):]
	for len(last) > 0 && !utf8.RuneStart(last[0]) {
		last = last[1:]
	}
	return first + "\n[" + strconv.Itoa(len(s)-len(first)-len(last)) + " bytes left out]\n" + last
}
