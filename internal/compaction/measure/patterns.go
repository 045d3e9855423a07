package measure

import (
	"slices"
	"strings"

	"compactd/internal/events/dialect"
)

// Patterns are texts in which * matches any text: "# Rules*" matches texts that begin with "# Rules", "*do
// not deploy*" texts that contain "do not deploy". Letters are compared exactly.
type Patterns []string

// Match reports whether one of the patterns matches a whole text, without white space around it. Its time is
// linear in the text.
func (p Patterns) Match(text string) bool {
	text = strings.TrimSpace(text)
	return slices.ContainsFunc(p, func(pattern string) bool { return matches(pattern, text) })
}

// matches finds the pieces between the stars from the left: the first match leaves the most for the others.
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
func (p Patterns) matchesOne(m *dialect.Message) bool {
	if len(p) == 0 {
		return false
	}
	for i := range m.Parts {
		if part := &m.Parts[i]; (part.Kind == dialect.PartText || part.Kind == dialect.PartResult) && p.Match(part.Content()) {
			return true
		}
	}
	return false
}
