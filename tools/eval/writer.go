package main

import (
	"errors"
	"fmt"

	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/model"
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
	var failed error
	written := llm.New([]model.Model{m}, func(a summarize.Attempt) { failed = errors.Join(failed, a.Err) })
	stop = func() error {
		closeServer()
		if failed != nil {
			return fmt.Errorf("the model's summary was not used: %w", failed)
		}
		return nil
	}
	return []writer{{"embedded", extract.New()}, {"llm", written}}, stop, nil
}

// poorSummary has the form of a summary, and no fact in it.
var poorSummary = summarizetest.TenSections("The work went on.")
