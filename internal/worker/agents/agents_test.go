package agents_test

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// A turn over HTTP is answered when it was taken or refused, with the reason. A client that sends
// it again gets the same answer, and it counts once.
func TestAgentsTurns(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	for n := 1; n <= 3; n++ {
		status, got := e.Post("s1", "turns", string(workertest.Turn(n)))
		if status != 200 || !got.Decided || !got.Accepted || got.Through.Turn != int64(n) || got.ID != fmt.Sprintf("t%d", n) || got.Duplicate {
			t.Errorf("turn %d: %d %+v", n, status, got)
		}
		again, same := e.Post("s1", "turns", string(workertest.Turn(n)))
		if again != 200 || !same.Duplicate || same.Seq != got.Seq || !same.Accepted {
			t.Errorf("turn %d again: %d %+v", n, again, same)
		}
	}
	const body = `{"turn":4,"messages":[{"role":"user","content":"go on"}]}`
	status, got := e.Post("s1", "turns", body, "Idempotency-Key", "key-1")
	if again, same := e.Post("s1", "turns", body, "Idempotency-Key", "key-1"); status != 200 || again != 200 || same.Seq != got.Seq || got.ID != "key-1" {
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
		{"bad type", workertest.BadTurn, nil, 400, events.CodeBadType, false},
		{"too large", `{"turn":5,"messages":[{"role":"user","content":"` + strings.Repeat("x", events.MaxTurnBytes) + `"}]}`, nil, 413, events.CodeTooLarge, false},
		{"too many", `{"turn":5,"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, events.MaxTurnMessages) + `{"role":"user","content":"x"}]}`, nil, 413, events.CodeTooManyMessages, false},
	} {
		before := env.LogEnd()
		status, got := e.Post("s1", "turns", c.body, c.headers...)
		if status != c.status || got.Code != c.code || env.LogEnd() > before != c.stored || got.Hint == "" {
			t.Errorf("%s: %d %+v, want %d %s", c.name, status, got, c.status, c.code)
		}
	}
}

// Overflow, compact and rewind are answered with the history that follows, and end ends the
// session.
func TestAgentsVerbs(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	for n := 1; n <= 12; n++ {
		if status, got := e.Post("s1", "turns", string(workertest.Turn(n))); status != 200 {
			t.Fatalf("turn %d: %d %+v", n, status, got)
		}
	}
	status, over := e.Post("s1", "overflow", `{"status":400,"error":"prompt is too long: 20000 tokens > 16000 maximum"}`)
	if status != 200 || over.Compaction == nil || over.Compaction.Reason != events.ReasonOverflow || over.Context == nil || len(over.Context.Messages) == 0 {
		t.Fatalf("overflow: %d %+v", status, over)
	}
	status, refused := e.Post("s1", "overflow", `{"status":401,"error":"invalid api key"}`)
	if status != 422 || refused.Code != events.CodeNotOverflow || refused.Accepted {
		t.Errorf("an error that is no overflow: %d %+v", status, refused)
	}
	status, back := e.Post("s1", "rewind", `{"generation":0}`)
	if status != 200 || back.Context == nil || back.Context.Generation != back.Compaction.Generation || len(back.Context.Messages) != 24 {
		t.Errorf("rewind: %d %+v", status, back)
	}
	if status, got := e.Post("s1", "compact", `{"focus":"the words","policy":{"target":0.3}}`); status != 200 || got.Compaction == nil || got.Compaction.Reason != events.ReasonManual {
		t.Errorf("compact: %d %+v", status, got)
	}
	if status, text := e.Do(workertest.DefaultToken, "GET", "/v1/sessions/default/s1/history", ""); status != 200 || strings.Count(text, `"reason":`) < 3 {
		t.Errorf("history: %d %s", status, text)
	}
	if status, got := e.Post("s1", "end", ""); status != 200 || !got.Accepted {
		t.Errorf("end: %d %+v", status, got)
	}
	if status, text := e.Do(workertest.DefaultToken, "GET", "/v1/sessions/default/s1/stats", ""); status != 200 || !strings.Contains(text, `"known":false`) {
		t.Errorf("after the end: %d %s", status, text)
	}
}

// A turn that is not decided in time is stored, and its sequence is in the answer: no worker
// decides here.
func TestAgentsPending(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	r := env.StartReady("a", observe.Listener{})
	e := env.StartEdge(r.Worker, nil)
	r.Stop()
	status, got := e.Post("s1", "turns?wait_ms=50", string(workertest.Turn(1)))
	if status != 202 || got.Decided || got.Code != events.CodeTurnPending || got.Seq != env.LogEnd() {
		t.Errorf("%d %+v", status, got)
	}
	r = env.StartReady("b", observe.Listener{})
	e = env.StartEdge(r.Worker, nil)
	status, text := e.Do(workertest.DefaultToken, "GET", fmt.Sprintf("/v1/sessions/default/s1/outcome?seq=%d", got.Seq), "")
	if status != 200 || !strings.Contains(text, `"accepted":true`) {
		t.Errorf("later: %d %s", status, text)
	}
}

// A session may have any name: in paths it is escaped, and NATS clients find it under its id.
func TestAgentsNames(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	for _, name := range []string{"plain", "Größe 7/a", "..", ".", "a/../b", "thread:1@x", "b64-czE", "\u0000\r\n", "日本語", strings.Repeat("ü", 128), "a?b#c", "%2F"} {
		if status, got := e.Post(name, "turns", `{"turn":1,"messages":[{"role":"user","content":"x"}]}`); status != 200 || !got.Accepted {
			t.Errorf("%q: %d %+v", name, status, got)
			continue
		}
		id, err := events.SessionID(name)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := env.Conn.Request("compactd.stats", fmt.Appendf(nil, `{"session":%q}`, id), workertest.WaitLimit)
		if err != nil || !strings.Contains(string(reply.Data), `"turns":1`) {
			t.Errorf("%q over NATS: %v %s", name, err, reply.Data)
		}
		if status, text := e.Do(workertest.DefaultToken, "GET", "/v1/sessions/default/"+workertest.Escape(name)+"/context?turn=1", ""); status != 200 || !strings.Contains(text, `"turn":1`) {
			t.Errorf("context of %q: %d %s", name, status, text)
		}
	}
	if status, text := e.Do(workertest.DefaultToken, "GET", "/v1/sessions", ""); status != 200 || !strings.Contains(text, `"name":"Größe 7/a"`) || strings.Contains(text, `"name":"plain"`) {
		t.Errorf("sessions: %d %s", status, text)
	}
	if status, got := e.Post(strings.Repeat("ü", 129), "turns", `{"messages":[]}`); status != 400 || got.Code != events.CodeBadID {
		t.Errorf("a name of 258 bytes: %d %+v", status, got)
	}
}
