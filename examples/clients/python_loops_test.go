package clients

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"compactd/examples/agenttest"
	"compactd/internal/broker/embedded"
	"compactd/internal/events"
)

// pythonLoops are the agents of clients/python/tests/loop.py, with what their providers are.
var pythonLoops = map[string]struct {
	format events.Format
	model  string
}{
	"httpx/chat":      {events.OpenAI, "gpt-4"},
	"httpx/responses": {events.Responses, "gpt-5"},
	"httpx/messages":  {events.Anthropic, "claude-opus-5-5"},
	"httpx-async":     {events.OpenAI, "gpt-4"},
	"urllib":          {events.OpenAI, "gpt-4"},
}

// pythonRun is how an agent is run.
type pythonRun struct {
	agent, worker string
	session       string // "" for the name of the test
	steps, window int    // 0 for 60, and for the provider's
	uses          int    // of tools in each answer
	at            func(call int)
	environ       []string
}

// pythonLine is what an agent prints, and what its provider has received.
type pythonLine struct {
	Version, Error       string
	Compactions, Changed int
	P50, P99, Prefix     float64
	Problems             []string
	provider             agenttest.Result
}

// run runs the agent, and prints what compactd did for it.
func (r pythonRun) run(t *testing.T, path string) (line pythonLine) {
	t.Helper()
	of := pythonLoops[r.agent]
	p := &agenttest.Strict{Format: of.format, Model: of.model, Uses: r.uses, At: r.at}
	server := httptest.NewServer(p)
	defer server.Close()
	printed := run(t, []string{path, "-B", "../../clients/python/tests/loop.py", r.agent}, append(r.environ,
		"PYTHONPATH=../../clients/python/src", "WORKER="+r.worker, "TOKEN=a-token", "PROVIDER="+server.URL, "SESSION="+cmp.Or(r.session, t.Name()),
		fmt.Sprint("STEPS=", cmp.Or(r.steps, 60)),
		fmt.Sprintf(`MODEL={"name":%q,"context_window":%d,"max_output_tokens":%d}`, p.Model, cmp.Or(r.window, agenttest.StrictWindow), agenttest.StrictOutput))...)
	must(t, json.Unmarshal([]byte(printed), &line))
	line.provider = p.Result()
	return line
}

// check prints a line, and demands that no call was refused but for its length, and sent again.
func (l pythonLine) check(t *testing.T, name string) {
	t.Helper()
	const steps = 60
	of := l.provider
	refusals := len(of.Refused) - of.TooLong
	fmt.Printf("%s version=%s steps=%d compactions=%d overflows=%d refusals=%d changed=%d lines=3 p50_ms=%.1f p99_ms=%.1f prefix_kept=%.2f\n",
		name, l.Version, of.Calls-of.TooLong, l.Compactions, of.TooLong, refusals, l.Changed, l.P50, l.P99, l.Prefix)
	if l.Error != "" || of.Calls-of.TooLong != steps || refusals > 0 || l.Changed > 0 || l.Compactions == 0 || of.Most < agenttest.StrictWindow/2 {
		t.Errorf("%s\nrefused: %v", l.Error, of.Refused)
	}
}

// cut reports whether the oldest turns were left out.
func (l pythonLine) cut() bool {
	return slices.ContainsFunc(l.Problems, func(p string) bool { return strings.HasPrefix(p, "client_cut") })
}

// Agents in Python make 60 steps against a provider that validates each request, in a window of
// 16,384 tokens: on requests of the SDKs and without any package, with streams and two calls of
// tools at once; with a window that is stated too large, so that calls are refused as too long;
// without a worker for a third of the steps; and with one that is killed twice. No refusal reaches an
// agent, and its messages stay as they were.
func TestPythonLoops(t *testing.T) {
	t.Parallel()
	if !needed("httpx") {
		t.Skip("SKIPPED: make clients runs it")
	}
	path := python(t, "httpx", "httpx")
	_, at := newWorker(t, buildWorker(t), "--listen", "127.0.0.1:-1")
	for agent := range pythonLoops {
		for name, r := range map[string]pythonRun{
			"mixed":   {uses: 2, environ: []string{"STREAM=1"}},
			"refused": {window: 3 * agenttest.StrictWindow},
			"away":    {},
			"killed":  {environ: []string{"STREAM=1"}},
		} {
			t.Run(agent+"/"+name, func(t *testing.T) {
				t.Parallel()
				r.agent, r.worker = agent, "http://"+at
				switch name {
				case "away":
					r.worker = absent(t, r.worker)
				case "killed":
					r.worker, r.at = restarted(t)
				}
				line := r.run(t, path)
				line.check(t, "client python/"+agent+"/"+name)
				away, killed := name == "away", name == "killed"
				if line.cut() != away && !killed || (len(line.Problems) > 0) != (away || killed) || line.Prefix < 0.99 && !line.cut() || (line.provider.TooLong > 0) != (name == "refused") {
					t.Errorf("problems: %q", line.Problems)
				}
			})
		}
	}
}

// The same in a fleet of three: the workers are killed one after the other, and the last of them is
// the agent's own and comes back.
func TestPythonFleet(t *testing.T) {
	t.Parallel()
	path := python(t, "httpx")
	broker, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Listen: "-1"})
	must(t, err)
	t.Cleanup(broker.Stop)
	bin := buildWorker(t)
	var fleet [3]*worker
	var at string
	for i := range fleet {
		fleet[i], at = newWorker(t, bin, "--nats", broker.ClientURL(), "--lease-ttl", "2s")
	}
	line := pythonRun{agent: "urllib", worker: "http://" + at, session: "fit", at: func(call int) {
		switch call {
		case 15, 30:
			fleet[call/15-1].kill()
		case 45:
			fleet[2].kill()
			fleet[2].start()
		case 17, 32, 47:
			awaitServed(t, at)
		}
	}}.run(t, path)
	line.check(t, t.Name()+":")
	if line.provider.TooLong > 0 {
		t.Errorf("refused: %v", line.provider.Refused)
	}
}

// Without a worker an agent sends its own history, reports one problem, and requests a worker once
// for each call at most. A refusal of its provider reaches it in the words of the provider.
func TestPythonWithoutWorker(t *testing.T) {
	t.Parallel()
	path := python(t, "httpx")
	for _, w := range failures(t) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			for _, steps := range []int{2, 40} {
				before := w.requests.Load()
				l := pythonRun{agent: "urllib", worker: w.url, steps: steps, environ: []string{"WAIT=0.1"}}.run(t, path)
				of := l.provider
				if steps == 2 && (l.Error != "" || of.Calls != 2) || steps == 40 && (!strings.HasPrefix(l.Error, `{"error"`) || of.TooLong != 1 || len(of.Refused) != 1) {
					t.Errorf("%d steps, %d calls, refused: %v\n%s", steps, of.Calls, of.Refused, l.Error)
				}
				if requests := w.requests.Load() - before; len(l.Problems) != 1 || requests > int64(of.Calls+of.TooLong) { // a late one has a second request after a refusal
					t.Errorf("%d requests for %d calls, problems: %q", requests, of.Calls, l.Problems)
				}
			}
		})
	}
}
