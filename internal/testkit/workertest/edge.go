package workertest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/worker"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/observe"
)

// Tokens of the tests.
const (
	DefaultToken  = "token-of-default"
	AcmeToken     = "token-of-acme"
	OperatorToken = "token-of-operator"
	ExpiredToken  = "token-that-expired"
)

// SessionToken is one of a single session.
const SessionToken = "token-of-session-s1"

// TokenLine is a line of a tokens file.
func TokenLine(token, rest string) string {
	return fmt.Sprintf("%x %s\n", sha256.Sum256([]byte(token)), rest)
}

// Edge is a listener for agents beside a worker.
type Edge struct {
	T        *testing.T
	Listener *agents.Edge
	Tokens   string // the file
	Stop     func()
	Running  *Running // the worker of RunEdge
}

// WriteTokens replaces the tokens file.
func (e *Edge) WriteTokens(lines string) {
	e.T.Helper()
	if err := os.WriteFile(e.Tokens, []byte(lines), 0o600); err != nil {
		e.T.Fatal(err)
	}
}

// Do sends a request, with headers as name, value, …
func (e *Edge) Do(token, method, path, body string, headers ...string) (int, string) {
	e.T.Helper()
	var content io.Reader = http.NoBody
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(e.T.Context(), method, "http://"+e.Listener.Addr()+path, content)
	if err != nil {
		e.T.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		e.T.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		e.T.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// Post publishes an event of the tenant default, and reads the answer.
func (e *Edge) Post(session, verb, body string, headers ...string) (int, events.EventResponse) {
	e.T.Helper()
	status, text := e.Do(DefaultToken, "POST", "/v1/sessions/default/"+Escape(session)+"/"+verb, body, headers...)
	var out events.EventResponse
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		e.T.Fatalf("%s: %v: %s", verb, err, text)
	}
	if out.Seq > 0 {
		if err := schematest.Validate("event-response", []byte(text)); err != nil {
			e.T.Errorf("%s: %v: %s", verb, err, text)
		}
	}
	return status, out
}

// Compress calls compress as a gateway does, by default as LiteLLM's guardrail: without a session.
func (e *Edge) Compress(token string, history []codec.Raw, headers ...string) (out events.CompressResponse) {
	e.T.Helper()
	body, err := json.Marshal(map[string]any{"messages": history, "model": "gpt-4"})
	if err != nil {
		e.T.Fatal(err)
	}
	if len(headers) == 0 {
		headers = []string{"User-Agent", "litellm/1.93.0", "Content-Type", "application/json"}
	}
	status, text := e.Do(token, "POST", "/v1/compress", string(body), headers...)
	if err := codec.Unmarshal([]byte(text), &out); err != nil || status != http.StatusOK || len(out.Messages) == 0 {
		e.T.Fatalf("compress: %d %s", status, text)
	}
	if err := schematest.Validate("compress-response", []byte(text)); err != nil {
		e.T.Errorf("%v: %s", err, text)
	}
	return out
}

// Open sends the beginning of a request, and leaves the connection open.
func (e *Edge) Open(text string) net.Conn {
	e.T.Helper()
	c, err := net.Dial("tcp", e.Listener.Addr())
	if err != nil {
		e.T.Fatal(err)
	}
	e.T.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		e.T.Fatal(err)
	}
	return c
}

// StartEdge starts a listener for agents that a worker answers.
func (env *Env) StartEdge(wk *worker.Worker, change func(*agents.Config)) *Edge {
	env.T.Helper()
	e := &Edge{T: env.T, Tokens: filepath.Join(env.T.TempDir(), "tokens")}
	e.WriteTokens(TokenLine(DefaultToken, "default agent") + "# comment\n\n" + TokenLine(AcmeToken, "acme agent 2099-01-01T00:00:00Z") +
		TokenLine(OperatorToken, "* operator") + TokenLine(ExpiredToken, "default agent 2020-01-01T00:00:00Z"))
	c := agents.Config{
		Listen: "127.0.0.1:-1", Tokens: e.Tokens, Rate: 100_000, Service: wk.Service(),
		OnError: func(err error) { env.T.Logf("edge: %v", err) },
	}
	if change != nil {
		change(&c)
	}
	var err error
	if e.Listener, err = agents.New(c); err != nil {
		env.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := e.Listener.Run(ctx); err != nil {
			env.T.Error(err)
		}
	})
	e.Stop = func() { cancel(); running.Wait() }
	env.T.Cleanup(e.Stop)
	return e
}

// RunEdge starts a worker and a listener for agents.
func (env *Env) RunEdge() *Edge {
	env.T.Helper()
	r := env.StartReady("a", observe.Listener{})
	e := env.StartEdge(r.Worker, nil)
	e.Running = r
	return e
}

// Escape writes a name as one part of a path, also one of dots.
func Escape(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}
