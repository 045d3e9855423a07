package loops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"compactd/client"
)

// measure is one run of an agent. It stands between the agent and the transport, the transport and
// the worker, and the transport and the provider. An agent makes one call after the other.
type measure struct {
	worker client.Worker
	absent bool // the requests 20 to 40 are not answered

	requests    int
	added       []time.Duration // by the worker, to each call
	generation  int64
	compactions int
	cuts        int

	own     []json.RawMessage // of the agent's last call
	changed int               // messages of the agent that are others than in the call before
	sent    []json.RawMessage // to the provider, and the generation that it was made under
	under   int64
	bytes   int // sent again in the same generation
	kept    int // of them, that are the beginning of the next call
}

func (m *measure) Sync(ctx context.Context, session string, in client.Sync) (*client.Synced, error) {
	m.requests++
	if m.absent && m.requests >= 20 && m.requests < 40 {
		return nil, &client.Error{Code: client.CodeUnavailable}
	}
	from := time.Now()
	s, err := m.worker.Sync(ctx, session, in)
	m.added = append(m.added, time.Since(from))
	if err == nil {
		m.generation = s.Generation
	}
	return s, err
}

func (m *measure) onCompacted(string, *client.Synced) { m.compactions++ }

func (m *measure) onProblem(n client.Note) {
	if n.Code == client.CodeCut {
		m.cuts++
	}
}

// agent counts the messages that an SDK sends otherwise than in the call before.
type agent struct {
	*measure
	to http.RoundTripper
}

func (a *agent) RoundTrip(r *http.Request) (*http.Response, error) {
	history, err := historyOf(r)
	if err != nil {
		return nil, err
	}
	for i, m := range a.own {
		if !bytes.Equal(m, history[i]) {
			a.changed++
		}
	}
	a.own = history
	return a.to.RoundTrip(r)
}

// provider compares the beginning of each call with the one before.
type provider measure

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	history, err := historyOf(r)
	if err != nil {
		return nil, err
	}
	if p.generation == p.under {
		same := true
		for i, m := range p.sent {
			p.bytes += len(m)
			if same = same && i < len(history) && bytes.Equal(m, history[i]); same {
				p.kept += len(m)
			}
		}
	}
	p.sent, p.under = history, p.generation
	return http.DefaultTransport.RoundTrip(r)
}

// historyOf returns the messages of a request, without the marks of a cache.
func historyOf(r *http.Request) ([]json.RawMessage, error) {
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	var sent struct{ Messages, Input []json.RawMessage }
	err = json.NewDecoder(body).Decode(&sent)
	history := slices.Concat(sent.Messages, sent.Input)
	for i, m := range history { // marks move
		history[i] = bytes.ReplaceAll(m, []byte(`"cache_control":{"type":"ephemeral"},`), nil)
	}
	return history, err
}

// prefixKept is the share of bytes that begin the next call too.
func (m *measure) prefixKept() float64 {
	if m.bytes == 0 {
		return 1
	}
	return float64(m.kept) / float64(m.bytes)
}

// lines that an agent needs: fitter, transport and client.
const lines = 3

// print writes the line that make clients collects.
func (m *measure) print(name, version string, steps, overflows, refusals int) {
	slices.Sort(m.added)
	at := func(share int) float64 { return float64(m.added[(len(m.added)-1)*share/100].Microseconds()) / 1000 }
	fmt.Printf("client %s version=%s steps=%d compactions=%d overflows=%d refusals=%d changed=%d lines=%d p50_ms=%.1f p99_ms=%.1f prefix_kept=%.2f\n",
		name, version, steps, m.compactions, overflows, refusals, m.changed, lines, at(50), at(99), m.prefixKept())
}

// versionOf is that of a module.
func versionOf(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
