package llm_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"compactd/internal/events/dialect"
	"compactd/internal/summarize"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/model"
)

// named is a model that fails, and notes that it was called.
type named struct {
	name   string
	called *[]string
}

func (m named) Name() string         { return m.name }
func (m named) Limits() model.Limits { return model.Limits{Window: 100_000, MaxOutput: 8_000} }
func (m named) Complete(context.Context, model.Request) (model.Reply, error) {
	*m.called = append(*m.called, m.name)
	return model.Reply{}, errors.New("busy")
}

// A13: only the models that the policy names receive text, of messages and of files, in the
// worker's order; where none is left, the embedded summarizer writes.
func TestOnlyNamedModelsAreCalled(t *testing.T) {
	for _, c := range []struct {
		writer summarize.Writer
		want   []string
	}{
		{summarize.Writer{}, []string{"openai/a", "anthropic/b", "anthropic/c/d"}},
		{summarize.Writer{Provider: "anthropic"}, []string{"anthropic/b", "anthropic/c/d"}},
		{summarize.Writer{Provider: "anthropic", Model: "c/d"}, []string{"anthropic/c/d"}},
		{summarize.Writer{Provider: "openai", Model: "b"}, nil},
		{summarize.Writer{Provider: "embedded"}, nil},
	} {
		var called []string
		s := llm.New(named{"openai/a", &called}, named{"anthropic/b", &called}, named{"anthropic/c/d", &called})
		in := summarize.Input{MaxUnits: 20_000, Writer: c.writer, Messages: []summarize.Message{
			{Turn: 1, Message: dialect.Message{Role: dialect.RoleUser, Parts: []dialect.Part{{Kind: dialect.PartText, Text: "Rename the flag in cmd/main.go."}}}},
		}}
		out, err := s.Summarize(t.Context(), in)
		if err != nil || out.Text == "" || !slices.Equal(called, c.want) {
			t.Errorf("%+v: called %v, want %v; %v", c.writer, called, c.want, err)
		}
		called = nil
		file, err := s.SummarizeFile(t.Context(), summarize.File{Name: "a.go", Type: "code", Text: "package a\n\nfunc A() {}\n", MaxUnits: 2_000, Writer: c.writer})
		if err != nil || file.Text == "" || !slices.Equal(called, c.want) {
			t.Errorf("file, %+v: called %v, want %v; %v", c.writer, called, c.want, err)
		}
	}
}
