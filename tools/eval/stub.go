package main

import (
	"context"
	"strings"

	"compactd/internal/events"
	"compactd/internal/summarize"
)

// stub writes summaries that have a size and nothing else.
type stub struct{}

// stubUnits is about what summaries of the real sessions have.
const stubUnits = 12_000

// Summarize implements [summarize.Summarizer].
func (stub) Summarize(_ context.Context, in summarize.Input) (*events.Summary, error) {
	s := &events.Summary{Text: "x", Record: []events.RecordLine{}, Model: "stub"}
	s.Text = strings.Repeat("x", max(1, int(min(in.MaxUnits, stubUnits))-sizeOf(s)))
	return s, nil
}
