package syncs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// wantFits checks an answer whose messages fit.
func wantFits(a *workertest.SyncAgent) {
	a.T.Helper()
	if b := a.Last.Budget; a.Last.Code != "" || !b.WithinBudget || !a.Last.Changed || len(a.Sent) >= len(a.History) || !a.Last.Recorded {
		a.T.Errorf("%d of %d messages: code %q, changed %t, recorded %t, budget %+v", len(a.Sent), len(a.History), a.Last.Code, a.Last.Changed, a.Last.Recorded, b)
	}
}

// A history to which an operator returned stays in the context, and the agent's next call fits.
func TestSyncAfterRewind(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	e := env.RunEdge()
	a := &workertest.SyncAgent{T: t, Env: env, Session: "rewound"}
	for n := range 20 {
		a.Add("user", fmt.Sprintf("Question %d.", n))
		a.Add("assistant", strings.Repeat("There is more to say about it. ", 60))
	}
	a.Add("user", "Go on.")
	a.Sync(0, "")
	wantFits(a)
	prefix := fmt.Sprintf(`,"prefix":{"count":%d,"hash":%q}`, a.Last.Count, a.Last.Hash)
	if status, out := e.Post(a.Session, "rewind", `{"id":"back","generation":0}`); status != 200 {
		t.Fatalf("%d %+v", status, out)
	}
	generation := env.Stats(a.Session).Generation
	view := ""
	for range 2 {
		for _, more := range []string{"", `,"dry_run":true`} {
			a.Sync(0, more)
			wantFits(a)
			if view = a.Last.View; a.Last.Count != 0 {
				t.Errorf("a prefix of %d messages, which the next answer does not take", a.Last.Count)
			}
		}
		if out, bad := a.Request(len(a.History), prefix); bad != nil || out.Need != events.NeedAll {
			t.Errorf("with a prefix: %+v %+v", out, bad)
		}
	}
	if got := env.ContextMessages(a.Session); events.OpenAI.DigestOf(got) != events.OpenAI.DigestOf(a.History) || env.Stats(a.Session).Generation != generation {
		t.Errorf("the context has %d messages of %d", len(got), len(a.History))
	}
	a.Add("assistant", "Yes.")
	a.Add("user", "And then?")
	a.Sync(0, fmt.Sprintf(`,"usage":{"view":%q,"prompt_tokens":900,"completion_tokens":9}`, view))
	wantFits(a)
	if a.Last.Generation <= generation || len(a.Last.Warnings) > 0 {
		t.Errorf("a later turn is in generation %d after %d, warnings %+v", a.Last.Generation, generation, a.Last.Warnings)
	}
	a.WantContext()
}

// Where the turn of a sync is not decided in time, the messages of the answer fit, also beyond what an answer may
// have.
func TestSyncLateFits(t *testing.T) {
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), MaxPayload: 1 << 20}, topology.Config{Partitions: 1})
	committing, released := make(chan struct{}, 1000), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	r := env.StartReady("a", observe.Listener{Committed: func(observe.Committed) {
		committing <- struct{}{}
		<-released
	}})
	e := env.StartEdge(r.Worker, nil)
	env.Publish(events.KindTurn, "other", []byte(`{"id":"t","model":{"provider":"openai","name":"gpt-4"},"messages":[{"role":"user","content":"Wait."}]}`))
	workertest.Next(t, committing, "commit")
	history := []object{{"role": "user", "content": "Go on."}}
	for n := range 6 {
		id := fmt.Sprintf("call_%d", n)
		history = append(history,
			object{"role": "assistant", "content": nil, "tool_calls": []any{object{"id": id, "type": "function", "function": object{"name": "read", "arguments": "{}"}}}},
			object{"role": "tool", "tool_call_id": id, "content": strings.Repeat(fmt.Sprintf("word %d ", n), 40_000)})
	}
	send := func(session, form string, wait int) events.SyncResponse {
		t.Helper()
		body, err := json.Marshal(object{"model": object{"provider": "openai", "name": "gpt-4o"}, "form": form, "wait_ms": wait, "messages": history})
		if err != nil {
			t.Fatal(err)
		}
		status, text := e.Do(workertest.DefaultToken, "POST", "/v1/sessions/default/"+session+"/sync", string(body))
		var out events.SyncResponse
		if err := codec.Unmarshal([]byte(text), &out); err != nil || status != 200 {
			t.Fatalf("%s: %d %.400s", form, status, text)
		}
		if out.Code != "" || !out.Budget.WithinBudget || !out.Changed || !out.Recorded || out.Count != int64(len(history)) {
			t.Errorf("%s: code %q, changed %t, recorded %t, count %d, budget %+v", form, out.Code, out.Changed, out.Recorded, out.Count, out.Budget)
		}
		return out
	}
	for _, form := range []string{"messages", "parts"} {
		if out := send(form, form, 0); len(out.Warnings) == 0 || out.Warnings[0].Code != events.CodeLate {
			t.Errorf("%s: warnings %+v", form, out.Warnings)
		}
	}
	release()
	for _, form := range []string{"messages", "parts"} {
		if out := send(form, form, 8000); len(out.Warnings) > 0 || out.Known != int64(len(history)) {
			t.Errorf("%s later: %d messages are known, warnings %+v", form, out.Known, out.Warnings)
		}
	}
}
