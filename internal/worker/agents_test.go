package worker_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/worker"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/observe"
)

// Tokens of the tests.
const (
	defaultToken  = "token-of-default"
	acmeToken     = "token-of-acme"
	operatorToken = "token-of-operator"
	expiredToken  = "token-that-expired"
)

func tokenLine(token, rest string) string {
	return fmt.Sprintf("%x %s\n", sha256.Sum256([]byte(token)), rest)
}

// edge is a listener for agents beside a worker.
type edge struct {
	t      *testing.T
	edge   *agents.Edge
	tokens string // the file
	stop   func()
}

// edge starts a listener for agents that a worker answers.
func (env *testEnv) edge(wk *worker.Worker, change func(*agents.Config)) *edge {
	env.t.Helper()
	e := &edge{t: env.t, tokens: filepath.Join(env.t.TempDir(), "tokens")}
	e.write(tokenLine(defaultToken, "default agent") + "# comment\n\n" + tokenLine(acmeToken, "acme agent 2099-01-01T00:00:00Z") +
		tokenLine(operatorToken, "* operator") + tokenLine(expiredToken, "default agent 2020-01-01T00:00:00Z"))
	c := agents.Config{
		Listen: "127.0.0.1:-1", Tokens: e.tokens, Rate: 100_000, Service: wk.Service(),
		OnError: func(err error) { env.t.Logf("edge: %v", err) },
	}
	if change != nil {
		change(&c)
	}
	var err error
	if e.edge, err = agents.New(c); err != nil {
		env.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := e.edge.Run(ctx); err != nil {
			env.t.Error(err)
		}
	})
	e.stop = func() { cancel(); running.Wait() }
	env.t.Cleanup(e.stop)
	return e
}

func (e *edge) write(lines string) {
	e.t.Helper()
	if err := os.WriteFile(e.tokens, []byte(lines), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// do sends a request, with headers as name, value, …
func (e *edge) do(token, method, path, body string, headers ...string) (int, string) {
	e.t.Helper()
	var content io.Reader = http.NoBody
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(e.t.Context(), method, "http://"+e.edge.Addr()+path, content)
	if err != nil {
		e.t.Fatal(err)
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
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// escape writes a name as one part of a path, also one of dots.
func escape(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// post publishes an event of the tenant default, and reads the answer.
func (e *edge) post(session, verb, body string, headers ...string) (int, events.EventResponse) {
	e.t.Helper()
	status, text := e.do(defaultToken, "POST", "/v1/sessions/default/"+escape(session)+"/"+verb, body, headers...)
	var out events.EventResponse
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		e.t.Fatalf("%s: %v: %s", verb, err, text)
	}
	if out.Seq > 0 {
		if err := schematest.Validate("event-response", []byte(text)); err != nil {
			e.t.Errorf("%s: %v: %s", verb, err, text)
		}
	}
	return status, out
}

// runEdge starts a worker and a listener for agents.
func (env *testEnv) runEdge() (*running, *edge) {
	env.t.Helper()
	r := env.start("a", observe.Listener{})
	<-r.worker.Ready()
	return r, env.edge(r.worker, nil)
}

// A turn over HTTP is answered when it was taken or refused, with the reason. A client that sends
// it again gets the same answer, and it counts once.
func TestAgentsTurns(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r, e := env.runEdge()
	for n := 1; n <= 3; n++ {
		status, got := e.post("s1", "turns", string(turn(n)))
		if status != 200 || !got.Decided || !got.Accepted || got.Through.Turn != int64(n) || got.ID != fmt.Sprintf("t%d", n) || got.Duplicate {
			t.Errorf("turn %d: %d %+v", n, status, got)
		}
		again, same := e.post("s1", "turns", string(turn(n)))
		if again != 200 || !same.Duplicate || same.Seq != got.Seq || !same.Accepted {
			t.Errorf("turn %d again: %d %+v", n, again, same)
		}
	}
	const body = `{"turn":4,"messages":[{"role":"user","content":"go on"}]}`
	status, got := e.post("s1", "turns", body, "Idempotency-Key", "key-1")
	if again, same := e.post("s1", "turns", body, "Idempotency-Key", "key-1"); status != 200 || again != 200 || same.Seq != got.Seq || got.ID != "key-1" {
		t.Errorf("with a key: %d %+v, then %d %+v", status, got, again, same)
	}
	for _, c := range []struct {
		name, body string
		headers    []string
		status     int
		code       events.Code
		stored     bool
	}{
		{"conflict", `{"turn":2,"messages":[{"role":"user","content":"other"}]}`, nil, 422, events.CodeTurnConflict, true},
		{"gap", `{"turn":9,"messages":[{"role":"user","content":"later"}]}`, nil, 200, events.CodeTurnGap, true},
		{"id of another", `{"id":"t1","turn":5,"messages":[{"role":"user","content":"x"}]}`, nil, 409, events.CodeDuplicateID, false},
		{"two ids", `{"id":"a","turn":5,"messages":[]}`, []string{"Idempotency-Key", "b"}, 400, events.CodeBadID, false},
		{"two keys", body, []string{"Idempotency-Key", "b", "Idempotency-Key", "b"}, 400, events.CodeBadID, false},
		{"bad json", `{"turn":5,`, nil, 400, events.CodeBadJSON, false},
		{"bad type", badTurn, nil, 400, events.CodeBadType, false},
		{"too large", `{"turn":5,"messages":[{"role":"user","content":"` + strings.Repeat("x", events.MaxTurnBytes) + `"}]}`, nil, 413, events.CodeTooLarge, false},
		{"too many", `{"turn":5,"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, events.MaxTurnMessages) + `{"role":"user","content":"x"}]}`, nil, 413, events.CodeTooManyMessages, false},
	} {
		before := env.logEnd()
		status, got := e.post("s1", "turns", c.body, c.headers...)
		if status != c.status || got.Code != c.code || env.logEnd() > before != c.stored || got.Hint == "" {
			t.Errorf("%s: %d %+v, want %d %s", c.name, status, got, c.status, c.code)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// Overflow, compact and rewind are answered with the history that follows, and end ends the
// session.
func TestAgentsVerbs(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r, e := env.runEdge()
	for n := 1; n <= 12; n++ {
		if status, got := e.post("s1", "turns", string(turn(n))); status != 200 {
			t.Fatalf("turn %d: %d %+v", n, status, got)
		}
	}
	status, over := e.post("s1", "overflow", `{"status":400,"error":"prompt is too long: 20000 tokens > 16000 maximum"}`)
	if status != 200 || over.Compaction == nil || over.Compaction.Reason != events.ReasonOverflow || over.Context == nil || len(over.Context.Messages) == 0 {
		t.Fatalf("overflow: %d %+v", status, over)
	}
	status, refused := e.post("s1", "overflow", `{"status":401,"error":"invalid api key"}`)
	if status != 422 || refused.Code != events.CodeNotOverflow || refused.Accepted {
		t.Errorf("an error that is no overflow: %d %+v", status, refused)
	}
	status, back := e.post("s1", "rewind", `{"generation":0}`)
	if status != 200 || back.Context == nil || back.Context.Generation != back.Compaction.Generation || len(back.Context.Messages) != 24 {
		t.Errorf("rewind: %d %+v", status, back)
	}
	if status, got := e.post("s1", "compact", `{"focus":"the words","policy":{"target":0.3}}`); status != 200 || got.Compaction == nil || got.Compaction.Reason != events.ReasonManual {
		t.Errorf("compact: %d %+v", status, got)
	}
	if status, text := e.do(defaultToken, "GET", "/v1/sessions/default/s1/history", ""); status != 200 || strings.Count(text, `"reason":`) < 3 {
		t.Errorf("history: %d %s", status, text)
	}
	if status, got := e.post("s1", "end", ""); status != 200 || !got.Accepted {
		t.Errorf("end: %d %+v", status, got)
	}
	if status, text := e.do(defaultToken, "GET", "/v1/sessions/default/s1/stats", ""); status != 200 || !strings.Contains(text, `"known":false`) {
		t.Errorf("after the end: %d %s", status, text)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// A turn that is not decided in time is stored, and its sequence is in the answer: no worker
// decides here.
func TestAgentsPending(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r := env.start("a", observe.Listener{})
	<-r.worker.Ready()
	e := env.edge(r.worker, nil)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	status, got := e.post("s1", "turns?wait_ms=50", string(turn(1)))
	if status != 202 || got.Decided || got.Code != events.CodeTurnPending || got.Seq != env.logEnd() {
		t.Errorf("%d %+v", status, got)
	}
	r = env.start("b", observe.Listener{})
	<-r.worker.Ready()
	e = env.edge(r.worker, nil)
	status, text := e.do(defaultToken, "GET", fmt.Sprintf("/v1/sessions/default/s1/outcome?seq=%d", got.Seq), "")
	if status != 200 || !strings.Contains(text, `"accepted":true`) {
		t.Errorf("later: %d %s", status, text)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// A session may have any name: in paths it is escaped, and NATS clients find it under its id.
func TestAgentsNames(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r, e := env.runEdge()
	for _, name := range []string{"plain", "Größe 7/a", "..", ".", "a/../b", "thread:1@x", "b64-czE", "\u0000\r\n", "日本語", strings.Repeat("ü", 128), "a?b#c", "%2F"} {
		if status, got := e.post(name, "turns", `{"turn":1,"messages":[{"role":"user","content":"x"}]}`); status != 200 || !got.Accepted {
			t.Errorf("%q: %d %+v", name, status, got)
			continue
		}
		id, err := events.SessionID(name)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := env.conn.Request("compactd.stats", fmt.Appendf(nil, `{"session":%q}`, id), waitLimit)
		if err != nil || !strings.Contains(string(reply.Data), `"turns":1`) {
			t.Errorf("%q over NATS: %v %s", name, err, reply.Data)
		}
		if status, text := e.do(defaultToken, "GET", "/v1/sessions/default/"+escape(name)+"/context?turn=1", ""); status != 200 || !strings.Contains(text, `"turn":1`) {
			t.Errorf("context of %q: %d %s", name, status, text)
		}
	}
	if status, text := e.do(defaultToken, "GET", "/v1/sessions", ""); status != 200 || !strings.Contains(text, `"name":"Größe 7/a"`) || strings.Contains(text, `"name":"plain"`) {
		t.Errorf("sessions: %d %s", status, text)
	}
	if status, got := e.post(strings.Repeat("ü", 129), "turns", `{"messages":[]}`); status != 400 || got.Code != events.CodeBadID {
		t.Errorf("a name of 258 bytes: %d %+v", status, got)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// The id that another tenant has used first keeps no event from being stored, and it counts once.
func TestAgentsSquattedID(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r, e := env.runEdge()
	m := nats.NewMsg("session.turn.globex.x")
	m.Header.Set(nats.MsgIdHdr, "t1")
	m.Data = turn(1)
	if _, err := env.js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	status, got := e.post("s1", "turns", string(turn(1)))
	again, same := e.post("s1", "turns", string(turn(1)))
	if status != 200 || got.Duplicate || again != 200 || !same.Duplicate || same.Seq != got.Seq {
		t.Errorf("%d %+v, then %d %+v", status, got, again, same)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// logEnd is the last sequence of the log.
func (env *testEnv) logEnd() uint64 {
	env.t.Helper()
	s, err := env.js.Stream(env.t.Context(), "SESSIONS")
	if err != nil {
		env.t.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}

// An operator erases a session over HTTP, and is answered when it is done. Agents may not, also
// not their own. An erased text is not retrieved any more.
func TestAgentsForget(t *testing.T) {
	t.Parallel()
	env := newEnv(t, t.TempDir())
	r, e := env.runEdge()
	const path = "/v1/sessions/default/chat%2F1"
	var first events.EventResponse
	for n := 1; n <= 3; n++ {
		status, got := e.post("chat/1", "turns", string(turn(n)))
		if status != 200 {
			t.Fatalf("turn %d: %d %+v", n, status, got)
		}
		if n == 1 {
			first = got
		}
	}
	text := strings.Repeat(fmt.Sprintf("word %d ", 1), 200)
	hash := events.ContentHash(first.Seq, text)
	if status, got := e.do(defaultToken, "GET", "/v1/retrieve/"+hash, ""); status != 200 || !strings.Contains(got, text) {
		t.Fatalf("before: %d %.200s", status, got)
	}
	before := env.logEnd()
	for name, body := range map[string]string{"an agent": "", "a field that it does not know": `{"turn":2}`} {
		token, want := defaultToken, 403
		if body != "" {
			token, want = operatorToken, 400
		}
		if status, got := e.do(token, "POST", path+"/forget", body); status != want || !strings.Contains(got, `"hint"`) {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	if env.logEnd() != before {
		t.Error("a refused erasure is published")
	}
	status, got := e.do(operatorToken, "POST", path+"/forget?wait_ms=8000", `{"id":"erase-1"}`)
	for end := time.Now().Add(waitLimit); status == 202 && time.Now().Before(end); { // sent again, it waits on
		status, got = e.do(operatorToken, "POST", path+"/forget?wait_ms=8000", `{"id":"erase-1"}`)
	}
	var out events.EventResponse
	if err := json.Unmarshal([]byte(got), &out); err != nil || status != 200 || !out.Accepted || out.Erased == nil || out.Erased.Events != 3 || out.Erased.Seq != out.Seq {
		t.Fatalf("%d %s", status, got)
	}
	if err := schematest.Validate("event-response", []byte(got)); err != nil {
		t.Error(err)
	}
	if status, got := e.do(defaultToken, "GET", path+"/context", ""); status != 200 || !strings.Contains(got, `"known":false`) {
		t.Errorf("after: %d %s", status, got)
	}
	if status, got := e.do(defaultToken, "GET", "/v1/retrieve/"+hash, ""); status != 404 {
		t.Errorf("an original that was erased: %d %.200s", status, got)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
