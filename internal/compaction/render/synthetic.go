package render

import (
	"fmt"

	"github.com/google/uuid"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// IDNamespace is the namespace of the ids of outcomes and of synthetic messages.
var IDNamespace = uuid.MustParse("6f8f4a6c-1d0e-5b7a-9c57-0c8f3d6b2a11")

// Messages that compactd makes have ids in the dialects that know ids. They follow
// from what the message represents, so that every rendering of a history gives the
// same; within a session no two are equal.

// syntheticID is the id of a message made to complete that of an entry.
func syntheticID(prefix string, e *measure.Entry) string {
	return prefix + idOf("%s %d %d %d %d", prefix, e.Seq, e.Turn, e.Index, e.Part)
}

func idOf(format string, args ...any) string {
	return uuid.NewSHA1(IDNamespace, fmt.Appendf(nil, format, args...)).String()
}

// truncationMessage is a truncation notice. Of its range only the end is sure: a
// summary may take the beginning.
func truncationMessage(e *measure.Entry) events.Message {
	text := measure.TruncateText
	if int64(e.Text) > measure.UnitsOf(text) {
		text += measure.RecallMarker
	}
	m := textMessage(events.RoleUser, text)
	end := e.End()
	m.Truncation = idOf("truncation %d %d", end.Turn, end.Index)
	m.ID = "truncation-marker-" + m.Truncation
	return m
}

// summarized is the message of a summary, with its id.
func summarized(e *measure.Entry, m events.Message) events.Message {
	m.Condensation = idOf("condensation %d", e.Seq)
	m.ID = "summary-" + m.Condensation
	return m
}
