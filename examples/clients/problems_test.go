package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"compactd/examples/agenttest"
	"compactd/internal/events"
)

// failure is a worker that is of no use.
type failure struct {
	name     string
	url      string
	requests *atomic.Int64
}

// failures starts a worker of each kind: away, one without an answer, one that refuses, and one whose answers
// are cut.
func failures(t *testing.T) []failure {
	t.Helper()
	all := []failure{{"away", "http://127.0.0.1:1", new(atomic.Int64)}} // no server has that port
	for name, answer := range map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"refuses": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"code":"forbidden","message":"the token is unknown"}`, http.StatusUnauthorized)
		},
		"other": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"v":1}`)) },
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4000")
			_, _ = w.Write([]byte(`{"v":1,"parts":[`))
		},
	} {
		requests := new(atomic.Int64)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			// The server sees that its client is gone only once the body was read.
			var body json.RawMessage
			_ = json.NewDecoder(r.Body).Decode(&body)
			answer(w, r)
		}))
		t.Cleanup(server.Close)
		all = append(all, failure{name, server.URL, requests})
	}
	return all
}

// outside runs a program to its end, and returns its output.
func outside(t *testing.T, args []string, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Without a worker the agent in Python sends its own history, and does not ask in a loop. A
// refusal of its provider ends it with the words of the provider.
func TestFitWithoutWorker(t *testing.T) {
	t.Parallel()
	lacksPython(t)
	for _, w := range failures(t) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				steps   int
				refused bool
			}{{2, false}, {40, true}} {
				if c.refused && w.name == "hangs" {
					continue // each of the 40 calls waits for two seconds
				}
				p := &agenttest.Strict{Format: events.OpenAI, Model: "gpt-4"}
				server := httptest.NewServer(p)
				defer server.Close()
				before := w.requests.Load()
				out, err := outside(t, []string{"python3", "-B", "../python/fit.py"}, "TOKEN=wrong", fmt.Sprint("STEPS=", c.steps),
					"SYNC="+w.url, "CHAT="+server.URL+"/v1/chat/completions", `MODEL={"provider":"openai","name":"gpt-4"}`)
				r := p.Result()
				if c.refused != (err != nil) || c.refused && !strings.Contains(out, "RuntimeError: {\"error\"") {
					t.Errorf("%d steps: %v\n%s", c.steps, err, out)
				}
				if !c.refused && (r.Calls != c.steps || len(r.Refused) > 0) {
					t.Errorf("%d calls, refused: %v\n%s", r.Calls, r.Refused, out)
				}
				if requests := w.requests.Load() - before; requests > int64(r.Calls)+120 { // a refused call tries for eight seconds
					t.Errorf("%d requests for %d calls", requests, r.Calls)
				}
			}
		})
	}
}

// lacksNode skips the test where there is no Node.
func lacksNode(t *testing.T) {
	t.Helper()
	if exec.CommandContext(t.Context(), "node", "--version").Run() == nil {
		return
	}
	if needed("typescript") {
		t.Fatal("it needs node 20 or newer")
	}
	fmt.Printf("\n** THE PACKAGE FOR JAVASCRIPT WAS NOT RUN: it needs node 20 or newer\n\n")
	t.Skip("SKIPPED: it needs node 20 or newer")
}
