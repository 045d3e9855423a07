package extract_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
)

// checked counts how often work reads the state of its context, where others compute first.
type checked struct {
	context.Context

	times int
}

func (c *checked) Err() error {
	c.times++
	return c.Context.Err()
}

// Extraction checks its context before each message of a range, and every 64 lines of a file.
func TestChecks(t *testing.T) {
	const messages, lines = 500, 6_400
	in := summarize.Input{MaxUnits: 10_000}
	for i := range messages {
		in.Messages = append(in.Messages, summarize.Message{Turn: int64(i + 1), Message: dialect.Message{
			Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: fmt.Sprintf("Look at file %d.", i)}},
		}})
	}
	c := &checked{Context: t.Context()}
	if extract.ScanUntil(c, &in); c.times < messages {
		t.Errorf("%d checks of %d messages", c.times, messages)
	}
	c = &checked{Context: t.Context()}
	if _, err := extract.Outline(c, summarize.File{Text: strings.Repeat("func f() {}\n", lines), MaxUnits: 1_000}); err != nil || c.times < lines/64 {
		t.Errorf("%d checks of %d lines, %v", c.times, lines, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := extract.Outline(ended, summarize.File{Text: "func f() {}", MaxUnits: 1_000}); err == nil {
		t.Error("an outline was made after the context ended")
	}
}
