package main

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anthropics/anthropic-sdk-go/option"

	"compactd/client"
	"compactd/examples/agenttest"
	"compactd/internal/events"
)

// The agent speaks far beyond its model's window, which compactd does not know. Calls are refused
// as too long, and no refusal reaches the agent.
func TestAgent(t *testing.T) {
	t.Parallel()
	p := &agenttest.Strict{Format: events.Anthropic, Model: "claude-test", Window: 4000, Talks: true}
	server := httptest.NewServer(p)
	defer server.Close()
	window := client.Model{Name: "claude-test", ContextWindow: 8000, MaxOutputTokens: 500}
	a := start(agenttest.HTTP(t), "chat", window, option.WithBaseURL(server.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
	a.files = fstest.MapFS{"f1.go": {Data: []byte(strings.Repeat("a line of notes\n", 40))}}
	var out bytes.Buffer
	if err := a.run(t.Context(), strings.NewReader(strings.Repeat("What is in the notes?\n", 25)), &out); err != nil {
		t.Fatal(err)
	}
	r := p.Result()
	if n := strings.Count(out.String(), "Answer "); n != 25 || r.TooLong == 0 || len(r.Refused) > r.TooLong {
		t.Errorf("%d answers; refused: %v", n, r.Refused)
	}
}
