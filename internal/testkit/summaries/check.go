package summaries

import (
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// CheckSize fails where a summary has no text, or it or its record is too large.
func CheckSize(t interface{ Fatalf(string, ...any) }, s *events.Summary, limit int64) {
	text := s.Message().Parts[0].Text
	if n := int64(codec.Units(text)); n > limit {
		t.Fatalf("%d units, more than %d:\n%s", n, limit, text)
	}
	if strings.TrimSpace(s.Text) == "" {
		t.Fatalf("no text")
	}
	record := 0
	for _, r := range s.Record {
		record += codec.Units("- " + r.String() + "\n")
	}
	if int64(record) > limit*71/100 {
		t.Fatalf("record has %d of %d units", record, limit)
	}
}

// HasLine reports whether a record has a line.
func HasLine(record []events.RecordLine, k events.RecordKind, text string) bool {
	return slices.ContainsFunc(record, func(r events.RecordLine) bool { return r.Kind == k && r.Text == text })
}

// RecordText writes a record, one fact a line.
func RecordText(record []events.RecordLine) string {
	var b strings.Builder
	for _, r := range record {
		b.WriteString(r.String() + "\n")
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

// BlankLines writes a blank line as a dot: a blank line would end the expectation.
func BlankLines(s string) string { return strings.ReplaceAll(s, "\n\n", "\n.\n") }
