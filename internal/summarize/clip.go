package summarize

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"compactd/internal/events"
)

// Bounds of one line, in UTF-16 units.
const (
	goalUnits      = 500
	ruleUnits      = 400
	sentenceUnits  = 300
	requestUnits   = 160 // of a request in the course of the task
	userUnits      = 400 // of a user message in the record
	commandUnits   = 120
	failureUnits   = 160
	taskUnits      = 200
	identUnits     = 64
	pathUnits      = 1_024 // longer paths are not taken for files
	lineUnits      = 1_100 // of a line of the previous summary
	ellipsis       = "…"
	maxScanned     = 1 << 20 // bytes of one text that are split into sentences
	imagePlace     = "[image]"
	documentPlace  = "[document]"
	base64Mark     = ";base64,"
	escape         = '\x1b'
	maxEscapeBytes = 32
)

// clip returns s as one line of at most n units: runs of white space become one
// space, control characters and invisible marks go, and a text that is longer
// ends in an ellipsis. It reads no more of s than it needs.
func clip(s string, n int) string {
	s = withoutData(s)
	var b strings.Builder
	b.Grow(min(len(s), n+8))
	units, fits := 0, 0 // fits is the length of b that leaves a unit for the ellipsis
	gap := false
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == escape:
			i += escapeLen(s[i:])
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
			return b.String()[:fits] + ellipsis
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

// plain is clip without a bound.
func plain(s string) string { return clip(s, len(s)+1) }

// hidden reports what nobody sees, but a model reads: control characters, marks
// that turn the direction of text, and tag characters.
func hidden(r rune) bool {
	return unicode.IsControl(r) || r == '\u200b' || r == '\ufeff' ||
		r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r >= 0xE0000 && r <= 0xE007F
}

// escapeLen is the length of the terminal sequence at the start of s.
func escapeLen(s string) int {
	if len(s) < 2 || s[1] != '[' {
		return 1
	}
	for i := 2; i < min(len(s), maxEscapeBytes); i++ {
		if s[i] >= '@' && s[i] <= '~' {
			return i + 1
		}
	}
	return 1
}

var dataURL = regexp.MustCompile(`data:([a-z]+)/[\w.+-]+;base64,[A-Za-z0-9+/]*={0,2}`)

// withoutData replaces data URLs, which nobody can read, by the name of what
// they hold.
func withoutData(s string) string {
	if !strings.Contains(s, base64Mark) {
		return s
	}
	return dataURL.ReplaceAllStringFunc(s, func(u string) string {
		if strings.HasPrefix(u, "data:image/") {
			return imagePlace
		}
		return documentPlace
	})
}

// textCost is what a line of the text costs in the message, its newline included.
func textCost(s string) int { return events.Units(s) + 1 + 3*tags(s) }

// tags counts what [events.Summary.Message] escapes, at 3 units each.
func tags(s string) int {
	if !strings.Contains(s, "condensed-summary>") {
		return 0
	}
	return strings.Count(s, openTag) + strings.Count(s, closeTag)
}
