package main

import (
	"context"
	"errors"
	"fmt"

	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
)

// writer is who writes the text of summaries.
type writer struct {
	name       string
	summarizer summarize.Summarizer
}

// writers are the embedded summarizer, and a model that writes as little as it
// may. stop ends the model; its error states that it did not write.
func writers() (ws []writer, stop func() error, err error) {
	s, closeServer := summarizetest.Open(poorSummary)
	m, err := provider.New(s.Config(summarizetest.OpenAI))
	if err != nil {
		closeServer()
		return nil, nil, err
	}
	written := &watched{Summarizer: llm.New(m)}
	stop = func() error {
		closeServer()
		if written.failed != nil {
			return fmt.Errorf("the model's summary was not used: %w", written.failed)
		}
		return nil
	}
	return []writer{{"embedded", extract.New()}, {"llm", written}}, stop, nil
}

// watched collects the errors of attempts.
type watched struct {
	summarize.Summarizer
	failed error
}

// Summarize implements [summarize.Summarizer].
func (w *watched) Summarize(ctx context.Context, in summarize.Input) (*events.Summary, error) {
	in.OnAttempt = func(a summarize.Attempt) { w.failed = errors.Join(w.failed, a.Err) }
	return w.Summarizer.Summarize(ctx, in)
}

// poorSummary has the form of a summary, and no fact in it.
var poorSummary = summarizetest.TenSections("The work went on.")
