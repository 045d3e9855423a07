package compaction

import (
	"fmt"

	"github.com/google/uuid"

	"compactd/internal/events"
)

// Messages that compactd makes have ids in the dialects that know ids. They follow
// from what the message stands for, so that every rendering of a history gives the
// same; within a session no two are equal.

// madeID is the id of a message made to complete that of an entry.
func syntheticID(prefix string, e *Entry) string {
	return prefix + idOf("%s %d %d %d %d", prefix, e.Seq, e.Turn, e.Index, e.Part)
}

func idOf(format string, args ...any) string {
	return uuid.NewSHA1(idNamespace, fmt.Appendf(nil, format, args...)).String()
}

// marker says that messages were truncated. Of its range only the end is sure: a
// summary may take the beginning.
func truncationMessage(e *Entry) events.Message {
	text := TruncateText
	if int64(e.Text) > unitsOf(text) {
		text += recallMarker
	}
	m := textMessage(events.RoleUser, text)
	end := e.end()
	m.Truncation = idOf("truncation %d %d", end.Turn, end.Index)
	m.ID = "truncation-marker-" + m.Truncation
	return m
}

// summarized is the message of a summary, with its id.
func summarized(e *Entry, m events.Message) events.Message {
	m.Condensation = idOf("condensation %d", e.Seq)
	m.ID = "summary-" + m.Condensation
	return m
}
