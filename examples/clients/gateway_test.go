package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"compactd/examples/agenttest"
	"compactd/internal/testkit/freeport"
)

// Agents that have nothing of compactd but a base URL make 60 steps: in a window of 16,384 tokens, with
// streams and a window that is stated too large, and with a gateway and a worker that are killed. No
// refusal reaches an agent.
func TestGateway(t *testing.T) {
	lacksLoops(t)
	must(t, buildPackage())
	var agents []struct {
		Name, Wire, On      string
		Missing, Middleware bool
	}
	must(t, json.Unmarshal([]byte(run(t, []string{"node", loops, "--list"})), &agents))
	for _, a := range agents {
		if a.Missing {
			fmt.Printf("\n** %s WAS NOT RUN: %s is not installed: make gateway\n", a.Name, a.On)
			continue
		}
		if a.Middleware {
			continue
		}
		for _, c := range []struct {
			name, stream, retries string
			window                int
		}{{"whole", "", "0", agenttest.StrictWindow}, {"refused", "1", "0", 3 * agenttest.StrictWindow}, {"killed", "1", "9", agenttest.StrictWindow}} {
			if c.name == "killed" && a.On == "@earendil-works/pi-agent-core" {
				continue // it sends no call again
			}
			t.Run(a.Name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				worker, at := newWorker(t, buildWorker(t), "--listen", "127.0.0.1:-1")
				w := wires[a.Wire]
				p := &tapped{Strict: &agenttest.Strict{Format: w.format, Model: w.model, Steps: steps, Uses: 2}}
				server := httptest.NewServer(p)
				defer server.Close()
				gateway, url := newGateway(t, "http://"+at, server.URL, c.window)
				if c.name == "killed" {
					p.At = killing(gateway, worker)
				}
				printed := run(t, []string{"node", loops, a.Name}, "PROVIDER="+url, "STREAM="+c.stream, "RETRIES="+c.retries, fmt.Sprintf(`MODEL={"name":%q}`, w.model))
				var got behind
				must(t, json.Unmarshal([]byte(printed), &got))
				p.check(t, got, c.name)
			})
		}
	}
}

// killing kills a gateway and a worker at two of a provider's calls, and starts them again.
func killing(gateway, worker *worker) func(call int) {
	return func(call int) {
		switch call {
		case 20:
			gateway.kill()
			gateway.start()
		case 40:
			worker.kill()
			worker.start()
		}
	}
}

// newGateway starts the process of a gateway in front of a provider.
func newGateway(t *testing.T, workerAt, provider string, window int) (g *worker, at string) {
	t.Helper()
	at, err := freeport.Address()
	must(t, err)
	g = &worker{t: t, bin: buildWorker(t), args: []string{
		"gateway", "--gateway", at, "--worker", workerAt, "--worker-token", "a-token", "--window", strconv.Itoa(window), "--budget", "1m",
		"--upstream", "openai=" + provider, "--upstream", "anthropic=" + provider,
	}}
	g.start()
	t.Cleanup(g.kill)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if answer, err := http.Get("http://" + at + "/healthz"); err == nil { //nolint:noctx // it is a test
			_ = answer.Body.Close()
			return g, "http://" + at
		}
	}
	t.Fatal("the gateway does not answer within a minute")
	return nil, ""
}

// tapped is a provider behind a gateway, with what it received.
type tapped struct {
	*agenttest.Strict

	mu    sync.Mutex // guards the fields below
	calls [][]json.RawMessage
	waits []float64 // from the agent's call until it came, in milliseconds
}

func (p *tapped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	came := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if r.Method != http.MethodPost { // of an agent that looks whether its provider is there
		p.Strict.ServeHTTP(w, r)
		return
	}
	var in struct{ Messages, Input []json.RawMessage }
	began, err := strconv.ParseFloat(r.Header.Get("X-Began"), 64)
	if err != nil || json.Unmarshal(body, &in) != nil {
		http.Error(w, "no call of an agent", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	w.Header().Set("X-Call", strconv.Itoa(len(p.calls)))
	p.calls = append(p.calls, append(in.Messages, in.Input...))
	p.waits = append(p.waits, float64(came.UnixMicro())/1000-began)
	p.mu.Unlock()
	p.Strict.ServeHTTP(w, r)
}

// behind is what an agent had of its run behind a gateway.
type behind struct {
	Version, Error string
	Changed        *int        // messages of its history, nil where that is not known
	Generations    map[int]int // of each call that was answered
}

// check prints what a gateway did for an agent, and demands that no call was refused but for its
// length, and sent again.
func (p *tapped) check(t *testing.T, got behind, kind string) {
	t.Helper()
	r := p.Result()
	p.mu.Lock()
	defer p.mu.Unlock()
	made, refusals, compactions := r.Calls-len(r.Refused), len(r.Refused)-r.TooLong, slices.Max(slices.AppendSeq([]int{0}, maps.Values(got.Generations)))
	kept := p.kept(got.Generations)
	slices.Sort(p.waits)
	changed := ""
	if got.Changed != nil {
		changed = fmt.Sprintf(" changed=%d", *got.Changed)
	}
	_, name, _ := strings.Cut(t.Name(), "/")
	fmt.Printf("gateway %s version=%s steps=%d compactions=%d overflows=%d refusals=%d%s prefix_kept=%.2f p50_ms=%.1f p99_ms=%.1f\n",
		name, got.Version, made-1, compactions, r.TooLong, refusals, changed, kept,
		p.waits[len(p.waits)/2], p.waits[len(p.waits)*99/100])
	killed := kind == "killed"
	if got.Error != "" || refusals > 0 || got.Changed != nil && *got.Changed > 0 || compactions == 0 ||
		!killed && (kept < 0.99 || made != steps+1) || killed && made < steps+1 || (r.TooLong > 0) != (kind == "refused") {
		t.Errorf("%+v\nrefused: %v", got, r.Refused)
	}
}

// cacheMarks are members of blocks, behind others.
var cacheMarks = regexp.MustCompile(`,"cache_control":\{[^{}]*\}`)

// kept is the share of the bytes of calls that the next call of the same generation begins with. Marks
// of a cache are none of them: agents move their own.
func (p *tapped) kept(generations map[int]int) float64 {
	same, all, last := 0, 0, -1
	for i, call := range p.calls {
		generation, answered := generations[i]
		if !answered {
			continue
		}
		if last >= 0 && generation == generations[last] {
			begins := true
			for k, m := range p.calls[last] {
				m = cacheMarks.ReplaceAll(m, nil)
				all += len(m)
				if begins = begins && k < len(call) && bytes.Equal(m, cacheMarks.ReplaceAll(call[k], nil)); begins {
					same += len(m)
				}
			}
		}
		last = i
	}
	return float64(same) / float64(max(all, 1))
}
