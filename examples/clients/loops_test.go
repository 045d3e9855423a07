package clients

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"compactd/examples/agenttest"
	"compactd/internal/events"
)

// Agents on the SDKs of providers, with chat completions, Responses, and messages with thinking
// that is bound, make 60 steps in a window of 16,384 tokens. They send their own objects, but
// where compactd made a message: no call is refused, and no object is changed.
func TestLoops(t *testing.T) {
	if lacks := loopsLack(t); lacks != "" {
		if needed("typescript") {
			t.Fatal(lacks)
		}
		fmt.Printf("\n** THE AGENTS ON SDKS WERE NOT RUN: %s\n\n", lacks)
		t.Skip("SKIPPED: " + lacks)
	}
	_, at := newWorker(t, buildWorker(t), "--listen", "127.0.0.1:-1")
	for _, c := range []struct {
		agent, base     string
		provider, model string
		format          events.Format
	}{
		{"chat", "/v1", "openai", "gpt-4", events.OpenAI},
		{"responses", "/v1", "openai", "gpt-5", events.Responses},
		{"anthropic", "", "anthropic", "claude-opus-5-5", events.Anthropic},
	} {
		t.Run(c.agent, func(t *testing.T) {
			t.Parallel()
			p := &agenttest.Strict{Format: c.format, Model: c.model}
			server := httptest.NewServer(p)
			defer server.Close()
			printed := run(t, []string{"node", "../../clients/loops/agents.mjs", c.agent},
				"TOKEN=a-token", "STEPS=60", "SYNC=http://"+at+"/v1/sessions/default/"+c.agent+"/sync", "PROVIDER="+server.URL+c.base,
				fmt.Sprintf(`MODEL={"provider":%q,"name":%q,"context_window":%d,"max_output_tokens":%d}`, c.provider, c.model, agenttest.StrictWindow, agenttest.StrictOutput))
			var got struct {
				Calls, Own, Made, Changed int
				Refused                   []string
			}
			must(t, json.Unmarshal([]byte(printed), &got))
			r := p.Result()
			fmt.Printf("%s: %d calls, %d refused, at most %d tokens of %d; %d native objects sent, %d made, %d changed\n",
				t.Name(), r.Calls, len(r.Refused), r.Most, agenttest.StrictWindow, got.Own, got.Made, got.Changed)
			if r.Calls != 60 || len(r.Refused)+len(got.Refused) > 0 || r.Most < agenttest.StrictWindow/2 || got.Made == 0 || got.Own == 0 || got.Changed > 0 {
				t.Errorf("%+v, refused: %v", got, r.Refused)
			}
		})
	}
}

// loopsLack is what this machine lacks to run the agents.
func loopsLack(t *testing.T) string {
	if exec.CommandContext(t.Context(), "node", "--version").Run() != nil {
		return "it needs node 20 or newer, and npm"
	}
	if _, err := os.Stat("../../clients/loops/node_modules/openai"); err != nil {
		return "its packages are not installed: npm ci --prefix clients/loops"
	}
	return ""
}
