package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"compactd/client"
	"compactd/client/transport"
	"compactd/examples/agenttest"
	"compactd/internal/events"
)

// loop is an agent on plain HTTP that holds its whole history.
type loop struct {
	sdk     *http.Client
	url     string
	history []json.RawMessage
}

func newLoop(sdk *http.Client, url, task string) *loop {
	return &loop{sdk, url, []json.RawMessage{fmt.Appendf(nil, `{"role":"user","content":%q}`, task)}}
}

// step calls the model, and the tools that it calls. Each result has 2,500 tokens.
func (a *loop) step(ctx context.Context) error {
	body, err := json.Marshal(map[string]any{"model": "gpt-4", "messages": a.history})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := a.sdk.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	var out struct {
		Choices []struct{ Message json.RawMessage }
	}
	if err := json.Unmarshal(data, &out); err != nil || len(out.Choices) == 0 {
		return fmt.Errorf("%s: %s", answer.Status, data)
	}
	a.history = append(a.history, out.Choices[0].Message)
	var message struct {
		ToolCalls []struct{ ID string } `json:"tool_calls"`
	}
	if err := json.Unmarshal(out.Choices[0].Message, &message); err != nil {
		return err
	}
	for _, c := range message.ToolCalls {
		a.history = append(a.history, fmt.Appendf(nil, `{"role":"tool","tool_call_id":%q,"content":%q}`, c.ID, strings.Repeat("a line ", 1400)))
	}
	return nil
}

// seen is what compactd reports, and how often a worker was requested.
type seen struct {
	mu          sync.Mutex // guards the fields below
	problems    []client.Code
	compactions int
	requests    int
	onRequest   func() // before each request to the worker; nil for none
}

func (s *seen) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.requests++
	on := s.onRequest
	s.mu.Unlock()
	if on != nil {
		on()
	}
	return http.DefaultTransport.RoundTrip(r)
}

// sdk is an HTTP client behind the transport.
func (s *seen) sdk(c client.FitterConfig, at, token, session string) *http.Client {
	c.Worker = &client.HTTP{URL: "http://" + at, Token: token, Client: &http.Client{Transport: s}}
	c.OnProblem = func(n client.Note) { s.mu.Lock(); defer s.mu.Unlock(); s.problems = append(s.problems, n.Code) }
	c.OnCompacted = func(string, *client.Synced) { s.mu.Lock(); defer s.mu.Unlock(); s.compactions++ }
	model := client.Model{ContextWindow: agenttest.StrictWindow, MaxOutputTokens: agenttest.StrictOutput}
	return &http.Client{Transport: &transport.Transport{Fitter: client.NewFitter(c), Session: session, Config: client.Config{Model: model}}}
}

// A worker that is killed, and one that is stopped, cost an agent no call, also with a full window.
// It is used again once it is back.
func TestTransportOutages(t *testing.T) {
	t.Parallel()
	for _, outage := range []struct {
		name        string
		begin, end  func(*worker)
		wait, again time.Duration
	}{
		{"killed", (*worker).kill, (*worker).start, time.Minute, time.Nanosecond},
		{"stopped", signalled(syscall.SIGSTOP), signalled(syscall.SIGCONT), time.Second, time.Nanosecond},
	} {
		t.Run(outage.name, func(t *testing.T) {
			t.Parallel()
			w, at := newWorker(t, buildWorker(t), "--listen", "127.0.0.1:-1", "--lease-ttl", "2s")
			s := &seen{}
			p := &agenttest.Strict{Format: events.OpenAI, Model: "gpt-4", At: func(call int) {
				switch call {
				case 20:
					outage.begin(w)
				case 25:
					outage.end(w)
					awaitServed(t, at)
				}
			}}
			provider := httptest.NewServer(p)
			defer provider.Close()
			a := newLoop(s.sdk(client.FitterConfig{Wait: outage.wait, RetryAfter: outage.again}, at, "a-token", t.Name()), provider.URL, "Read the files.")
			var during, before int
			for i := range 40 {
				if i == 20 {
					before = s.compactions
				} else if i == 25 {
					during = s.compactions - before
				}
				if err := a.step(t.Context()); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
			}
			r := p.Result()
			refusals := len(r.Refused) - r.TooLong
			fmt.Printf("client transport/%s steps=40 compactions=%d refusals=%d problems=%v\n", outage.name, s.compactions, refusals, s.problems)
			if refusals > 0 || during > 0 || before == 0 || s.compactions == before || !slices.Contains(s.problems, client.CodeCut) {
				t.Errorf("%d compactions before, %d during, %d in all; problems %v; refused %v", before, during, s.compactions, s.problems, r.Refused)
			}
		})
	}
}

func signalled(s syscall.Signal) func(*worker) {
	return func(w *worker) { _ = w.cmd.Process.Signal(s) }
}

// A wrong token is one callback and three requests. A call that is aborted while a worker is
// requested ends at once, and the provider does not get it.
func TestTransportRefused(t *testing.T) {
	t.Parallel()
	_, at := newWorker(t, buildWorker(t), "--listen", "127.0.0.1:-1")
	p := &agenttest.Strict{Format: events.OpenAI, Model: "gpt-4"}
	provider := httptest.NewServer(p)
	defer provider.Close()
	s := &seen{}
	a := newLoop(s.sdk(client.FitterConfig{RetryAfter: time.Minute}, at, "another", "refused"), provider.URL, "Read the files.")
	for range 5 {
		must(t, a.step(t.Context()))
	}
	if s.requests != 3 || !slices.Equal(s.problems, []client.Code{client.CodeUnauthorized}) {
		t.Errorf("%d requests, problems %v", s.requests, s.problems)
	}
	ctx, abort := context.WithCancel(t.Context())
	aborted := &seen{onRequest: abort}
	a.sdk = aborted.sdk(client.FitterConfig{Wait: time.Minute}, at, "a-token", "aborted")
	if err := a.step(ctx); !errors.Is(err, context.Canceled) || aborted.problems != nil || p.Result().Calls != 5 {
		t.Errorf("%v; problems %v; %d calls", err, aborted.problems, p.Result().Calls)
	}
}

// An agent edits its history, loses its memory, and shares the session with agents of its own: no
// call is refused, and no call has messages of two agents.
func TestTransportLife(t *testing.T) {
	t.Parallel()
	_, at := newWorker(t, buildWorker(t), "--listen", "127.0.0.1:-1")
	p := &agenttest.Strict{Format: events.OpenAI, Model: "gpt-4"}
	mixed := 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // of the agent above
		tasks := 0
		for _, task := range []string{"Read the files.", "Find the tests.", "Write the notes."} {
			if bytes.Contains(body, []byte(task)) {
				tasks++
			}
		}
		if tasks > 1 {
			mixed++
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.ServeHTTP(w, r)
	}))
	defer provider.Close()
	s := &seen{}
	sdk := s.sdk(client.FitterConfig{Wait: time.Minute}, at, "a-token", "life")
	a := newLoop(sdk, provider.URL, "Read the files.")
	var helpers []*loop
	for i := range 40 {
		switch i {
		case 10, 20:
			helpers = append(helpers, newLoop(sdk, provider.URL, []string{"Find the tests.", "Write the notes."}[i/10-1]))
		case 15: // regenerate
			a.history = a.history[:len(a.history)-2]
		case 25: // edit a result
			last := len(a.history) - 1
			a.history[last] = bytes.Replace(a.history[last], []byte("a line"), []byte("the line"), 1)
		case 30:
			sdk = s.sdk(client.FitterConfig{Wait: time.Minute}, at, "a-token", "life")
			a.sdk = sdk
		}
		for _, agent := range append(helpers, a) {
			if err := agent.step(t.Context()); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
	}
	r := p.Result()
	refusals := len(r.Refused) - r.TooLong
	fmt.Printf("client transport/life steps=%d compactions=%d refusals=%d mixed=%d problems=%v\n", r.Calls, s.compactions, refusals, mixed, s.problems)
	if refusals > 0 || mixed > 0 || s.compactions == 0 || len(s.problems) > 0 {
		t.Errorf("refused %v; problems %v", r.Refused, s.problems)
	}
}
