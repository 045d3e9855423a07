package compaction

import (
	"fmt"

	"github.com/google/uuid"

	"compactd/internal/events"
)

// Messages that compactd makes have ids in the dialects that know ids. They follow
// from the place in the log that they stand for, so that every rendering of a
// history gives the same.

// madeID is the id of a message made for an entry.
func madeID(prefix string, e *Entry) string {
	return prefix + placeID(prefix, e)
}

// placeID is a UUID over the place of an entry and what stands there. The place of
// a range is its end: a later range may take some of its beginning.
func placeID(what string, e *Entry) string {
	at := e.end()
	return uuid.NewSHA1(space, fmt.Appendf(nil, "%s %d %d %d %d", what, e.Seq, at.Turn, at.Index, at.Part)).String()
}

// marker says that messages were truncated.
func marker(e *Entry) events.Message {
	m := textMessage(events.RoleUser, TruncateText)
	m.Truncation = placeID("truncation", e)
	m.ID = "truncation-marker-" + m.Truncation
	return m
}

// summarized is the message of a summary, with its id.
func summarized(e *Entry, m events.Message) events.Message {
	m.Condensation = placeID("condensation", e)
	m.ID = "summary-" + m.Condensation
	return m
}
