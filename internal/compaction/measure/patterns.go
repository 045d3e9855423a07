package measure

import (
	"strings"

	"compactd/internal/events"
)

// Patterns are texts in which * stands for any text, of any length: "# Rules*" is what begins
// with "# Rules", "*do not deploy*" what contains "do not deploy". Letters are compared exactly.
type Patterns []string

// Match reports whether one of the patterns matches the whole of a text, white space around it
// aside. It takes time in proportion to the text.
func (p Patterns) Match(text string) bool {
	text = strings.TrimSpace(text)
	for _, pattern := range p {
		if matches(pattern, text) {
			return true
		}
	}
	return false
}

// matches finds the pieces between the stars from the left: the first that fits leaves the most
// for the others.
func matches(pattern, text string) bool {
	first, rest, more := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !ok || !more {
		return ok && text == ""
	}
	for {
		piece, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, piece)
		}
		_, behind, found := strings.Cut(text, piece)
		if !found {
			return false
		}
		text, rest = behind, after
	}
}

// matchesOne reports whether a text of a message, or of a result in it, matches.
func (p Patterns) matchesOne(m *events.Message) bool {
	if len(p) == 0 {
		return false
	}
	for i := range m.Parts {
		if part := &m.Parts[i]; (part.Kind == events.PartText || part.Kind == events.PartResult) && p.Match(part.Content()) {
			return true
		}
	}
	return false
}
