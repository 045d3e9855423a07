package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"compactd/examples/agenttest"
	"compactd/internal/events"
)

const (
	steps = 60
	lines = 3 // of an agent: import, call, and where the SDK takes it
)

// wires are what an agent may send, by name.
var wires = map[string]struct {
	format          events.Format
	provider, model string
}{
	"chat":      {events.OpenAI, "openai", "gpt-4"},
	"responses": {events.Responses, "openai", "gpt-5"},
	"messages":  {events.Anthropic, "anthropic", "claude-opus-5-5"},
}

// Agents on SDKs and frameworks make 60 steps behind the package, against a provider that validates
// each request, in a window of 16,384 tokens; with streams and a window that is stated too large, so
// that calls are refused as too long; without a worker for a third of the steps; and with one that is
// killed twice. No refusal reaches an agent, and its messages stay as they were.
func TestLoops(t *testing.T) {
	lacksLoops(t)
	must(t, buildPackage())
	var agents []struct {
		Name, Wire, On string
		Missing        bool
	}
	must(t, json.Unmarshal([]byte(run(t, []string{"node", loops, "--list"})), &agents))
	_, at := newWorker(t, buildWorker(t), "--listen", "127.0.0.1:-1")
	for _, a := range agents {
		if a.Missing {
			fmt.Printf("\n** %s WAS NOT RUN: %s is not installed: make clients\n", a.Name, a.On)
			continue
		}
		for _, c := range []struct {
			name, stream string
			window       int
		}{{"whole", "", agenttest.StrictWindow}, {"refused", "1", 3 * agenttest.StrictWindow}, {"away", "1", agenttest.StrictWindow}, {"killed", "1", agenttest.StrictWindow}} {
			t.Run(a.Name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				w, worker := wires[a.Wire], "http://"+at
				p := &agenttest.Strict{Format: w.format, Model: w.model, Steps: steps, Uses: 2}
				switch c.name {
				case "away":
					worker = absent(t, worker)
				case "killed":
					worker, p.At = restarted(t)
				}
				server := httptest.NewServer(p)
				defer server.Close()
				printed := run(t, []string{"node", loops, a.Name}, "WORKER="+worker, "TOKEN=a-token", "PROVIDER="+server.URL, "STREAM="+c.stream, "SESSION="+t.Name(),
					fmt.Sprintf(`MODEL={"provider":%q,"name":%q,"context_window":%d,"max_output_tokens":%d}`, w.provider, w.model, c.window, agenttest.StrictOutput))
				checkLoop(t, printed, p.Result(), c.name)
			})
		}
	}
}

// absent is a worker that does not answer the requests 20 to 40.
func absent(t *testing.T, worker string) string {
	t.Helper()
	at, err := url.Parse(worker)
	must(t, err)
	var requests atomic.Int64
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := requests.Add(1); n >= 20 && n < 40 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		data, err := io.ReadAll(r.Body) // an answer that comes before its end is read would be cut
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// checkLoop prints what compactd did for an agent.
func checkLoop(t *testing.T, printed string, r agenttest.Result, kind string) {
	t.Helper()
	var got struct {
		Version, Error       string
		Compactions, Changed int
		P50, P99, Prefix     float64
		Problems             []string
	}
	must(t, json.Unmarshal([]byte(printed), &got))
	made, refusals := r.Calls-len(r.Refused), len(r.Refused)-r.TooLong
	fmt.Printf("client %s version=%s steps=%d compactions=%d overflows=%d refusals=%d changed=%d lines=%d p50_ms=%g p99_ms=%g prefix_kept=%.2f\n",
		strings.TrimPrefix(t.Name(), "TestLoops/"), got.Version, made-1, got.Compactions, r.TooLong, refusals, got.Changed, lines, got.P50, got.P99, got.Prefix)
	cut := slices.ContainsFunc(got.Problems, func(p string) bool { return strings.HasPrefix(p, "client_cut") })
	problems := (len(got.Problems) > 0) != (kind == "away" || kind == "killed")
	if made != steps+1 || got.Compactions == 0 || refusals > 0 || got.Changed > 0 || got.Error != "" || problems ||
		got.Prefix < 0.99 && !cut || (r.TooLong > 0) != (kind == "refused") || cut != (kind == "away") && kind != "killed" {
		t.Errorf("%s\nrefused: %v", printed, r.Refused)
	}
}

const loops = "../../clients/loops/run.mjs"

// lacksLoops skips the test where the agents cannot run.
func lacksLoops(t *testing.T) {
	t.Helper()
	lacksPackage(t)
	if _, err := os.Stat("../../clients/loops/node_modules/openai"); err == nil {
		return
	}
	const lacks = "their packages are not installed: npm ci --prefix clients/loops"
	if needed("typescript") {
		t.Fatal(lacks)
	}
	fmt.Printf("\n** THE AGENTS ON SDKS WERE NOT RUN: %s\n\n", lacks)
	t.Skip("SKIPPED: " + lacks)
}
