package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"compactd/client"
	"compactd/examples/agenttest"
	"compactd/internal/events"
)

// The agent speaks far beyond its model's window, is refused once as too long, goes on
// in another process, and every call it makes is valid.
func TestAgent(t *testing.T) {
	t.Parallel()
	url := agenttest.Compactd(t)
	model := agenttest.Model(t, events.OpenAI, 3000)
	c, err := client.Connect(t.Context(), client.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	agentOf := func() *agent {
		// compactd is configured with a larger window than the model has.
		s, err := open(t.Context(), c, "chat", client.Model{Provider: "openai", Name: "gpt-test", ContextWindow: 8000, MaxOutputTokens: 500})
		if err != nil {
			t.Fatal(err)
		}
		return &agent{
			model: openai.NewClient(option.WithBaseURL(model.URL), option.WithAPIKey("none"), option.WithMaxRetries(0)), name: "gpt-test", session: s,
			files: fstest.MapFS{"notes.txt": {Data: []byte(strings.Repeat("a line of notes\n", 40))}},
		}
	}
	var out bytes.Buffer
	first := agentOf()
	if err := first.run(t.Context(), strings.NewReader(strings.Repeat("What is in the notes?\n", 25)), &out); err != nil {
		t.Fatal(err)
	}
	first.session.Close()
	second := agentOf()
	if err := second.run(t.Context(), strings.NewReader("And now?\n"), &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "Answer "); n != 26 {
		t.Errorf("%d answers", n)
	}
	h, err := second.session.Context(t.Context())
	if err != nil || h.Generation < 3 {
		t.Fatal(fmt.Sprintf("generation %d", h.Generation), err)
	}
	model.Check(t, h.Messages)
}
