package named

import (
	"strings"
	"unicode"

	"compactd/internal/events"
)

// Session is the id of a session that a person named: as its agent did, or by the id.
type Session string

// UnmarshalText takes a name, or an id that a name has.
func (s *Session) UnmarshalText(text []byte) error {
	id, err := events.SessionOf(string(text))
	*s = Session(id)
	return err
}

// Name is that of a session with an id, for people.
func Name(id string) string {
	return strings.Map(func(r rune) rune {
		if r != ' ' && !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, events.SessionName(id))
}

// Show is the address of a session for people.
func Show(a events.Address) string { return a.Tenant + "." + Name(a.Session) }
