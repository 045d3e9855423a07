package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"compactd/client"
	"compactd/client/transport"
	"compactd/examples/agenttest"
	"compactd/internal/gateway"
	"compactd/internal/ops/fakemodel"
)

const window = 4096

// newGateway starts a gateway in front of a provider.
func newGateway(t *testing.T, upstream string, c gateway.Config) (at string) {
	t.Helper()
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	if c.Secret = []byte("secret"); c.Upstreams == nil {
		c.Upstreams = map[string]*url.URL{"openai": u, "anthropic": u}
	}
	if c.Budget == 0 {
		c.Budget = time.Minute // a slow machine is no slow worker
	}
	g, err := gateway.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return server.URL
}

// newModel starts a model, and returns what it received.
func newModel(t *testing.T) (at string, calls func() []*fakemodel.Call) {
	t.Helper()
	var mu sync.Mutex
	var all []*fakemodel.Call
	m := &fakemodel.Model{
		Window: window, Output: 256,
		Answer: func(c *fakemodel.Call) fakemodel.Answer {
			return fakemodel.Answer{Text: fmt.Sprintf("Answer %d. ", c.Number) + strings.Repeat("There is more to say about it. ", 40)}
		},
		OnCall: func(c *fakemodel.Call) { mu.Lock(); defer mu.Unlock(); all = append(all, c) },
	}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	return server.URL, func() []*fakemodel.Call { mu.Lock(); defer mu.Unlock(); return all }
}

// chat is an agent with a history.
type chat struct {
	t       *testing.T
	at      string
	header  map[string]string
	history []map[string]string
}

// ask makes one call, and returns the header of its answer.
func (c *chat) ask(prompt string) http.Header {
	c.t.Helper()
	c.history = append(c.history, map[string]string{"role": "user", "content": prompt})
	var out struct {
		Choices []struct{ Message struct{ Content string } }
	}
	header := c.post("/v1/chat/completions", map[string]any{"model": "a-model", "messages": c.history}, &out)
	if len(out.Choices) != 1 {
		c.t.Fatalf("%d choices", len(out.Choices))
	}
	c.history = append(c.history, map[string]string{"role": "assistant", "content": out.Choices[0].Message.Content})
	return header
}

func (c *chat) post(path string, body, out any) http.Header {
	c.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.at+path, bytes.NewReader(data))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, v := range c.header {
		r.Header.Set(name, v)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s, %v", answer.Status, text, err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		c.t.Fatal(err)
	}
	return answer.Header
}

// An agent that names nothing is kept inside the window, and sees what was done in headers.
func TestCompacts(t *testing.T) {
	model, calls := newModel(t)
	agent := &chat{t: t, at: newGateway(t, model, gateway.Config{Worker: agenttest.HTTP(t), Model: client.Model{ContextWindow: window, MaxOutputTokens: 256}})}
	if h := agent.ask("A title?"); h.Get("X-Compactd-Generation") != "" {
		t.Errorf("one prompt is recorded: %v", h)
	}
	var last http.Header
	for i := range 30 {
		last = agent.ask(fmt.Sprintf("And number %d?", i))
	}
	if last.Get("X-Compactd-Changed") != "true" || last.Get("X-Compactd-Generation") == "0" || len(last.Get("X-Compactd-Saved")) < 4 {
		t.Errorf("the last answer has %v", last)
	}
	for _, c := range calls() {
		if c.TooLong || len(c.Refused) > 0 {
			t.Errorf("call %d: %d tokens, %v", c.Number, c.Tokens, c.Refused)
		}
	}
}

// Gateways behind a balancer serve one conversation in turn, and its calls begin with the same bytes
// until a compaction.
func TestReplicas(t *testing.T) {
	model, calls := newModel(t)
	config := gateway.Config{Worker: agenttest.HTTP(t), Model: client.Model{ContextWindow: window, MaxOutputTokens: 256}}
	replicas := []string{newGateway(t, model, config), newGateway(t, model, config)}
	agent, other := &chat{t: t}, &chat{t: t, at: replicas[0]}
	for i := range 5 { // the worker learns how this model counts
		other.ask(fmt.Sprintf("And word %d?", i))
	}
	begun := len(calls())
	var generations []string
	for i := range 30 {
		agent.at = replicas[i%2]
		generations = append(generations, agent.ask(fmt.Sprintf("And number %d?", i)).Get("X-Compactd-Generation"))
	}
	all, kept := calls()[begun:], 0
	for i, c := range all {
		if c.TooLong || len(c.Refused) > 0 {
			t.Errorf("call %d: %d tokens, %v", c.Number, c.Tokens, c.Refused)
		}
		if i == 0 || generations[i] != generations[i-1] {
			continue
		}
		kept++
		for k, m := range all[i-1].Messages {
			if !bytes.Equal(m, c.Messages[k]) {
				t.Errorf("call %d has another message %d: %s, before %s", c.Number, k, c.Messages[k], m)
			}
		}
	}
	if kept < 10 || generations[29] == "0" || generations[29] == "" {
		t.Errorf("generations %v", generations)
	}
}

// late is a worker that answers after a refusal alone in time.
type late struct{ client.Worker }

func (l late) Sync(ctx context.Context, session string, in client.Sync) (*client.Synced, error) {
	if in.Refusal == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.Worker.Sync(ctx, session, in)
}

// A call that was sent whole, because the worker was late, and refused as too long is sent again.
func TestLateWorker(t *testing.T) {
	model, calls := newModel(t)
	c := gateway.Config{Worker: late{agenttest.HTTP(t)}, Budget: time.Millisecond, Model: client.Model{ContextWindow: window, MaxOutputTokens: 256}}
	agent := &chat{t: t, at: newGateway(t, model, c)}
	for range 20 {
		agent.history = append(agent.history, map[string]string{"role": "user", "content": "And then?"},
			map[string]string{"role": "assistant", "content": strings.Repeat("There is more to say about it. ", 40)})
	}
	agent.ask("And now?")
	if all := calls(); len(all) != 2 || !all[0].TooLong || all[1].TooLong {
		t.Errorf("%d calls", len(all))
	}
}

// The trace of a call goes to the worker with its sync.
func TestTraceOfCall(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	worker, passed := agenttest.HTTP(t), make(chan string, 16)
	worker.Client = &http.Client{Transport: watched(func(r *http.Request) { passed <- r.Header.Get("traceparent") })}
	model, _ := newModel(t)
	agent := &chat{t: t, at: newGateway(t, model, gateway.Config{Worker: worker, Model: client.Model{ContextWindow: window, MaxOutputTokens: 256}}), header: map[string]string{"Traceparent": trace}}
	agent.ask("A title?")
	agent.ask("And then?")
	n := len(passed)
	for range n {
		if got := <-passed; got != trace {
			t.Errorf("the worker got the trace %q", got)
		}
	}
	if n == 0 {
		t.Error("the worker got no sync")
	}
}

// watched sees requests before they are sent.
type watched func(*http.Request)

func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	w(r)
	return http.DefaultTransport.RoundTrip(r)
}

// A worker that is there and late is reported as that: to start one would not help.
func TestLateIsNotAway(t *testing.T) {
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()
	model, _ := newModel(t)
	problems := make(chan client.Note, 1)
	c := gateway.Config{Worker: &client.HTTP{URL: hangs.URL, Token: "a-token"}, Budget: time.Millisecond, OnProblem: func(n client.Note) { problems <- n }}
	agent := &chat{t: t, at: newGateway(t, model, c)}
	agent.ask("A title?")
	agent.ask("And then?")
	if n := <-problems; n.Message != "the worker is late" || strings.Contains(n.Hint, "Start one") {
		t.Errorf("%+v", n)
	}
}

// The load of one conversation leaves the breakers of others closed.
func TestLateConversation(t *testing.T) {
	model, _ := newModel(t)
	c := gateway.Config{Worker: lateOf{agenttest.HTTP(t), "-slow"}, Budget: 30 * time.Second, Model: client.Model{ContextWindow: window, MaxOutputTokens: 256}}
	at := newGateway(t, model, c)
	slow := &chat{t: t, at: at, header: map[string]string{"X-Compactd-Session": "slow"}}
	good := &chat{t: t, at: at, header: map[string]string{"X-Compactd-Session": "good"}}
	for range 5 {
		if h := slow.ask("And then?"); h.Get("X-Compactd-Generation") != "" {
			t.Errorf("a worker answered: %v", h)
		}
	}
	if h := good.ask("And then?"); h.Get("X-Compactd-Generation") == "" {
		t.Errorf("no worker answered: %v", h)
	}
}

// lateOf is a worker that is away for a session.
type lateOf struct {
	client.Worker
	suffix string
}

func (l lateOf) Sync(ctx context.Context, session string, in client.Sync) (*client.Synced, error) {
	if strings.HasSuffix(session, l.suffix) {
		return nil, &client.Error{Code: client.CodeUnavailable}
	}
	return l.Worker.Sync(ctx, session, in)
}

// An audit changes nothing, and reports the tokens that would be saved.
func TestAudit(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Messages []json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"%d messages%s"}}]}`, len(in.Messages), strings.Repeat(" and more", 200))
	}))
	defer provider.Close()
	agent := &chat{t: t, at: newGateway(t, provider.URL, gateway.Config{Worker: agenttest.HTTP(t), Audit: true, Model: client.Model{ContextWindow: window, MaxOutputTokens: 256}})}
	var last http.Header
	for range 20 {
		last = agent.ask("And then?")
	}
	if got := agent.history[39]["content"]; !strings.HasPrefix(got, "39 messages") {
		t.Errorf("the last call had %.20s", got)
	}
	if last.Get("X-Compactd-Changed") != "false" || len(last.Get("X-Compactd-Saved")) < 4 {
		t.Errorf("the last answer has %v", last)
	}
}

// Tokens are counted of what a call would send, and a count records nothing.
func TestCountTokens(t *testing.T) {
	model, _ := newModel(t)
	var counted []int
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(r.URL.Path, "/count_tokens") {
			counted = append(counted, len(body))
			fmt.Fprintf(w, `{"input_tokens":%d}`, len(body)/4)
			return
		}
		to, err := http.NewRequestWithContext(r.Context(), r.Method, model+r.URL.Path, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		answer, err := http.DefaultClient.Do(to)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = answer.Body.Close() }()
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	}))
	defer provider.Close()
	var mu sync.Mutex
	saved, compacted := 0, 0
	config := gateway.Config{
		Worker: agenttest.HTTP(t), Model: client.Model{ContextWindow: window, MaxOutputTokens: 256},
		OnSaved:     func(transport.Report) { mu.Lock(); defer mu.Unlock(); saved++ },
		OnCompacted: func(string, *client.Synced) { mu.Lock(); defer mu.Unlock(); compacted++ },
	}
	agent := &chat{t: t, at: newGateway(t, provider.URL, config)}
	request := func() map[string]any {
		return map[string]any{"model": "claude-sonnet-4-5", "max_tokens": 256, "messages": agent.history}
	}
	for range 20 {
		agent.history = append(agent.history, map[string]string{"role": "user", "content": "And then?"})
		var out struct{ Content []struct{ Text string } }
		agent.post("/v1/messages", request(), &out)
		agent.history = append(agent.history, map[string]string{"role": "assistant", "content": out.Content[0].Text})
	}
	agent.history = append(agent.history, map[string]string{"role": "user", "content": "How long is it?"})
	mu.Lock()
	if saved == 0 || compacted == 0 {
		t.Errorf("%d calls saved, %d compactions", saved, compacted)
	}
	saved, compacted = 0, 0
	mu.Unlock()
	for range 3 {
		agent.at = newGateway(t, provider.URL, config) // it remembers no conversation
		var out struct {
			Tokens int `json:"input_tokens"`
		}
		agent.post("/v1/messages/count_tokens", request(), &out)
		if whole, err := json.Marshal(request()); err != nil || len(counted) == 0 || counted[len(counted)-1]*2 > len(whole) {
			t.Errorf("counted %v of %d bytes, %v", counted, len(whole), err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if saved+compacted > 0 {
		t.Errorf("by counts %d calls saved, %d compactions", saved, compacted)
	}
}

// A call that its provider refuses saves nothing: the agent repeats it.
func TestSavedOnce(t *testing.T) {
	model, _ := newModel(t)
	to, err := url.Parse(model)
	if err != nil {
		t.Fatal(err)
	}
	var busy atomic.Bool
	forward := httputil.NewSingleHostReverseProxy(to)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if busy.Load() {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	defer provider.Close()
	registry := prometheus.NewRegistry()
	calls := 0
	agent := &chat{t: t, at: newGateway(t, provider.URL, gateway.Config{
		Worker: agenttest.HTTP(t), Model: client.Model{ContextWindow: window, MaxOutputTokens: 256}, Registerer: registry,
		OnSaved: func(transport.Report) { calls++ },
	})}
	for range 20 {
		agent.ask("And then?")
	}
	tokens, before := metric(t, registry, "compactd_gateway_saved_tokens_total"), calls
	busy.Store(true)
	body, err := json.Marshal(map[string]any{"model": "a-model", "messages": agent.history})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		answer, err := http.Post(agent.at+"/v1/chat/completions", "application/json", bytes.NewReader(body)) //nolint:noctx // it is a test
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("X-Compactd-Saved") == "" {
			t.Errorf("%s, %v", answer.Status, answer.Header)
		}
	}
	if now := metric(t, registry, "compactd_gateway_saved_tokens_total"); now != tokens || tokens == 0 || calls != before {
		t.Errorf("%v tokens saved, before %v; %d calls, before %d", now, tokens, calls, before)
	}
}

// metric is the sum of the counters of a name.
func metric(t *testing.T, registry *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// An agent that has gone is no answer.
func TestAgentGone(t *testing.T) {
	received := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(received)
		<-r.Context().Done()
	}))
	defer provider.Close()
	u, err := url.Parse(provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	g, err := gateway.New(gateway.Config{Worker: &recorder{}, Upstreams: map[string]*url.URL{"openai": u}, Secret: []byte("secret"), Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-received; cancel() }()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/responses", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.DefaultClient.Do(r); err == nil {
		_ = answer.Body.Close()
		t.Error(answer.Status)
	}
	server.Close() // waits for the request
	if n := metric(t, registry, "compactd_gateway_requests_total"); n != 0 {
		t.Errorf("%v answers", n)
	}
}

// named calls report the session that they are recorded in.
type recorder struct {
	mu       sync.Mutex
	sessions []string
}

var errNone = errors.New("no worker")

func (r *recorder) Sync(_ context.Context, session string, _ client.Sync) (*client.Synced, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions = append(r.sessions, session)
	return nil, errNone
}

// Calls are of one conversation where principal and hint are, or principal and first prompt.
func TestSessions(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer provider.Close()
	text := func(role, s string) map[string]any { return map[string]any{"role": role, "content": s} }
	first := []any{text("system", "It is Monday."), text("user", "a"), text("assistant", "b"), text("user", "c")}
	longer := append([]any{text("system", "It is Tuesday.")}, append(first[1:], text("assistant", "d"), text("user", "e"))...)
	other := []any{text("user", "A"), text("assistant", "b"), text("user", "c")}
	key := map[string]string{"Authorization": "Bearer sk-very-secret"}
	with := func(more ...string) map[string]string {
		h := maps.Clone(key)
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	body := func(messages []any, more ...any) map[string]any {
		b := map[string]any{"model": "m", "messages": messages}
		for i := 0; i < len(more); i += 2 {
			b[more[i].(string)] = more[i+1]
		}
		return b
	}
	claude := func(id string) map[string]any { return map[string]any{"user_id": id} }
	for _, c := range []struct {
		name           string
		principal      string
		header, second map[string]string
		body, after    map[string]any
		same           bool
	}{
		{"a longer history", "", key, key, body(first), body(longer), true},
		{"another first prompt", "", key, key, body(first), body(other), false},
		{"another credential", "", key, map[string]string{"X-Api-Key": "sk-other"}, body(first), body(first), false},
		{"another user of a credential", "", key, key, body(first, "user", "u1"), body(first, "user", "u2"), false},
		{"another cache key", "", key, key, body(first, "prompt_cache_key", "k1"), body(first, "prompt_cache_key", "k2"), false},
		{"a hint", "", with("X-Session-Id", "1"), with("X-Session-Id", "1"), body(first), body(other), true},
		{"other hints", "", with("X-Session-Id", "1"), with("X-Session-Id", "2"), body(first), body(first), false},
		{"a hint of another credential", "", with("session_id", "1"), map[string]string{"session_id": "1"}, body(first), body(first), false},
		{"a hint that is no plain name", "", with("session_id", "a b/ü"), with("session_id", "a b/ü"), body(first), body(other), true},
		{"Claude Code", "", key, key, body(first, "metadata", claude("user_1_account_2_session_3")), body(other, "metadata", claude("user_1_account_2_session_3")), true},
		{"its JSON", "", key, key, body(first, "metadata", claude(`{"device_id":"1","session_id":"3"}`)), body(other, "metadata", claude(`{"device_id":"1","session_id":"3"}`)), true},
		{"its sub-agent", "", with("X-Claude-Code-Session-Id", "3"), with("X-Claude-Code-Session-Id", "3", "X-Claude-Code-Agent-Id", "4"), body(first), body(first), false},
		{"users of an application", "", key, key, body(first, "metadata", claude("u1")), body(first, "metadata", claude("u2")), false},
		{"a header of the operator", "X-User", with("X-User", "u1"), map[string]string{"X-User": "u1"}, body(first), body(longer), true},
		{"without it", "X-User", key, map[string]string{"X-Api-Key": "sk-other"}, body(first), body(first), false},
		{"two of them", "X-User", with("X-User", "u1"), with("X-User", "u2"), body(first), body(first), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r recorder
			at := newGateway(t, provider.URL, gateway.Config{Worker: &r, Principal: c.principal})
			var out any
			(&chat{t: t, at: at, header: c.header}).post("/v1/chat/completions", c.body, &out)
			(&chat{t: t, at: at, header: c.second}).post("/v1/chat/completions", c.after, &out)
			if len(r.sessions) != 2 || (r.sessions[0] == r.sessions[1]) != c.same {
				t.Errorf("sessions %q, want one: %t", r.sessions, c.same)
			}
			if strings.Contains(strings.Join(r.sessions, " "), "secret") {
				t.Errorf("a credential is in %q", r.sessions)
			}
		})
	}
}

// An upstream gets what an agent sent, but for the headers of gateways.
func TestPasses(t *testing.T) {
	body := `{"messages": [ {"role":"user","content":"` + strings.Repeat("x", 33<<20) + `"},{"role":"assistant","content":"y"},{"role":"user","content":"z"} ]}`
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil || string(got) != body || r.Header.Get("X-Compactd-Session")+r.Header.Get("X-User")+r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Authorization") != "Bearer sk-1" {
			t.Errorf("%d bytes, %v, %v", len(got), err, r.Header)
		}
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer provider.Close()
	for _, principal := range []string{"x-user", "authorization"} {
		at := newGateway(t, provider.URL, gateway.Config{Worker: &recorder{}, Principal: principal})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/to/openai/v1/chat/completions", io.MultiReader(strings.NewReader(body))) // without a length
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"X-Compactd-Session": {"1"}, "Authorization": {"Bearer sk-1"}}
		if principal == "x-user" {
			r.Header.Set(principal, "ann")
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "7" {
			t.Errorf("%s, %v", answer.Status, answer.Header)
		}
	}
}

// The path and the query of a request are sent as they came.
func TestPaths(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) }))
	defer provider.Close()
	plain, azure := newGateway(t, provider.URL, gateway.Config{Worker: &recorder{}}), newGateway(t, provider.URL+"/openai/deployments/d?api-version=1", gateway.Config{Worker: &recorder{}})
	for path, want := range map[string]string{
		"/v1/models/org%2Fname":           "/v1/models/org%2Fname",
		"/v1/models?a=1;b=%zz&c":          "/v1/models?a=1;b=%zz&c",
		"/to/openai/v1/files/a%2Fb?x=%20": "/v1/files/a%2Fb?x=%20",
		"/to/openai/v1//x/":               "/v1//x/",
		"/messages":                       "/v1/messages", // with a base URL that lacks the version
		"/v1/v1/models":                   "/v1/models",
		"/to/openai/chat/completions":     "/openai/deployments/d/chat/completions?api-version=1", // of azure
		"/to/openai/x?a=%zz":              "/openai/deployments/d/x?api-version=1&a=%zz",
	} {
		at := plain
		if strings.HasPrefix(want, "/openai/") {
			at = azure
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = strings.TrimPrefix(at, "http:") + path
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		if _ = answer.Body.Close(); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// Only Anthropic's own paths and clients reach Anthropic: the credential of another provider never does.
func TestRoutes(t *testing.T) {
	upstreams := map[string]*url.URL{}
	for _, name := range []string{"openai", "anthropic"} {
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
		t.Cleanup(provider.Close)
		var err error
		if upstreams[name], err = url.Parse(provider.URL); err != nil {
			t.Fatal(err)
		}
	}
	at := newGateway(t, "", gateway.Config{Worker: &recorder{}, Upstreams: upstreams})
	for _, test := range []struct{ path, version, want string }{
		{"/v1/messages", "", "anthropic"},
		{"/messages", "", "anthropic"},
		{"/v1/v1/messages", "", "anthropic"},
		{"/v1/messages/count_tokens", "", "anthropic"},
		{"/messages/count_tokens", "", "anthropic"},
		{"/v1/messages/batches/b1/results", "", "anthropic"},
		{"/v1/models", "2023-06-01", "anthropic"},
		{"/v1/models", "", "openai"},
		{"/v1/responses", "", "openai"},
		{"/v1/threads/t1/messages", "", "openai"},
		{"/v1/chat/completions/c1/messages", "", "openai"},
		{"/v1/responses/count_tokens", "", "openai"},
		{"/v1/messages-of-others", "", "openai"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.version != "" {
			r.Header.Set("Anthropic-Version", test.version)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		if _ = answer.Body.Close(); err != nil || string(got) != test.want {
			t.Errorf("%s %s: %q, want %s, %v", test.path, test.version, got, test.want, err)
		}
	}
}

// A call over a WebSocket is refused, so that its agent sends requests.
func TestWebSocket(t *testing.T) {
	at := newGateway(t, "http://127.0.0.1:1", gateway.Config{Worker: &recorder{}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/v1/responses", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusUpgradeRequired {
		t.Error(answer.Status)
	}
}

// A request that no upstream answers is an error in the form of providers.
func TestUpstreamIsAway(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	at := newGateway(t, gone.URL, gateway.Config{Worker: &recorder{}})
	for path, want := range map[string]int{"/v1/messages": http.StatusBadGateway, "/to/none/v1/messages": http.StatusNotFound} {
		answer, err := http.Post(at+path, "application/json", strings.NewReader("{}")) //nolint:noctx // it is a test
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			Error struct{ Code, Message string }
		}
		if err := json.NewDecoder(answer.Body).Decode(&out); err != nil || answer.StatusCode != want || out.Error.Code != "compactd_gateway" || out.Error.Message == "" {
			t.Errorf("%s: %s, %+v, %v", path, answer.Status, out, err)
		}
		_ = answer.Body.Close()
	}
}

// docs/gateway.md has every metric.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	at := newGateway(t, "http://127.0.0.1:1", gateway.Config{Worker: &recorder{}, Registerer: registry})
	answer, err := http.Post(at+"/v1/models", "", nil) //nolint:noctx // it is a test
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	families, err := registry.Gather()
	if err != nil || len(families) < 4 {
		t.Fatalf("%d metrics, %v", len(families), err)
	}
	for _, f := range families {
		if !strings.Contains(string(page), "| `"+f.GetName()+"`") {
			t.Errorf("%s is not in docs/gateway.md", f.GetName())
		}
	}
}
