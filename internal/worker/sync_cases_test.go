package worker_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/worker/observe"
)

// grow lets an agent work until its history was compacted.
func (a *syncAgent) grow(steps int) {
	a.t.Helper()
	if len(a.history) == 0 {
		a.add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
	}
	for range steps {
		a.call(len(a.history), 60)
		a.sync(0, "")
	}
}

func (a *syncAgent) wantRefused(code events.Code, more string) {
	a.t.Helper()
	before := a.env.turnsOf(a.session)
	if out, bad := a.request(0, more); bad == nil || bad.Code != code {
		a.t.Errorf("%s: %+v %+v, want %s", more, out, bad, code)
	}
	if after := a.env.turnsOf(a.session); after != before {
		a.t.Errorf("%s was published: %d turns, then %d", code, before, after)
	}
}

func (a *syncAgent) wantWarning(code events.Code) {
	a.t.Helper()
	if !slices.ContainsFunc(a.last.Warnings, func(w events.SyncWarning) bool { return w.Code == code }) {
		a.t.Errorf("warnings %+v, want %s", a.last.Warnings, code)
	}
}

// A sync of histories that are not simply longer than before.
func TestSyncCases(t *testing.T) {
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutSummaries())
	r := env.start("a", observe.Listener{})
	<-r.worker.Ready()
	agent := func(t *testing.T, session string) *syncAgent {
		return &syncAgent{t: t, env: env, session: session}
	}
	t.Run("another history", func(t *testing.T) {
		a := agent(t, "other")
		a.grow(3)
		kept := a.history
		a.history = nil
		a.add("user", "You are a sub-agent. Look for the cause in the package retry, and in nothing else than that.")
		a.wantRefused(events.CodeOtherHistory, `,"on_diverge":"refuse"`)
		a.sync(0, `,"branch":"research"`) // a sub-agent
		if id, _ := events.SessionID("other/research"); a.last.Session != "" && a.last.Session != id || env.turnsOf(id) != 1 {
			t.Errorf("%+v", a.last)
		}
		a.history = kept
		a.sync(0, "")
		a.wantContext()
	})
	t.Run("a longest answer above the window", func(t *testing.T) {
		a := agent(t, "longest")
		a.add("user", "Why does it fail?")
		messages, err := events.Marshal(a.history)
		if err != nil {
			t.Fatal(err)
		}
		in := fmt.Sprintf(`{"session":"longest","model":{"provider":"openai","name":"gpt-4","max_output_tokens":128000},"wait_ms":8000,"messages":%s}`, messages)
		var out events.SyncResponse
		if err := events.Unmarshal(a.deliver([]byte(in)).Data, &out); err != nil || !out.Recorded || out.Budget.ContextWindow != 8192 || out.Budget.OutputReserve != 2868 {
			t.Errorf("%+v, %v", out, err)
		}
	})
	t.Run("compacted by its client", func(t *testing.T) {
		a := agent(t, "own")
		a.grow(4)
		n := len(a.history)
		a.history = append([]events.Raw{events.Raw(`{"role":"user","content":"A summary of mine: it fails in retry.go."}`)}, a.history[n-2:]...)
		a.grow(1)
		branch := a.last.Session
		if got := env.lineage(branch); len(got) != len(a.history) || len(env.lineage(a.session)) != n {
			t.Errorf("the branch has %d messages of %d, and the session %d", len(got), len(a.history), len(env.lineage(a.session)))
		}
		if fork := env.forkOf(branch); fork == nil || fork.Session != a.session || fork.Turn != 4 {
			t.Errorf("it branched off %+v", fork)
		}
	})
	t.Run("an output cut on arrival", func(t *testing.T) { // B14
		a := agent(t, "arrival")
		a.add("user", "Run it.")
		a.call(1, 3)
		lines := "first line\\n" + strings.Repeat("line\\n", 300) + "last line"
		a.history[2] = events.Raw(fmt.Sprintf(`{"role":"tool","tool_call_id":"call_1","content":"%s","x_native":1}`, lines))
		a.sync(0, `,"policy":{"tool_output":{"when":"arrival","max_lines":100}}`)
		if n := len(a.last.Parts); n != 2 || a.last.Parts[1].Edit == nil || *a.last.Parts[1].Edit != 2 || len(a.sent) != 3 {
			t.Fatalf("%+v", a.last)
		}
		cut := string(a.sent[2])
		if strings.Contains(cut, "first line") || !strings.Contains(cut, "last line") || !strings.Contains(cut, "[Output truncated from ") || !strings.Contains(cut, `"call_1"`) {
			t.Errorf("%.400s", cut)
		}
		a.wantContext()
		a.call(2, 3)
		a.sync(0, "") // the caller still holds the whole
		if string(a.sent[2]) != cut || len(a.sent) != 5 || len(env.lineage(a.session)) != 5 {
			t.Errorf("the next call: %.400s", a.sent[2])
		}
		a.wantContext()
		a.history[2] = a.sent[2]
		a.call(3, 3)
		a.sync(0, "") // now it holds what it was given
		if string(a.sent[2]) != cut || len(env.lineage(a.session)) != 7 {
			t.Errorf("with its own preview: %.400s", a.sent[2])
		}
		a.wantContext()
	})
	t.Run("members that no dialect defines", func(t *testing.T) {
		a := agent(t, "unknown")
		a.grow(2)
		a.history = append(a.history, events.Raw(`{"role":"user","content":"","user_input_multi_content":[{"type":"text","text":"Look at this."}]}`))
		a.sync(0, "")
		if n := len(a.sent); n != len(a.history) || string(a.sent[n-1]) != string(a.history[n-1]) || len(a.last.Warnings) > 0 {
			t.Errorf("%+v: %s", a.last, a.sent[n-1])
		}
		a.history = append(a.history, events.Raw(`{"role":"user","content":" "}`))
		a.grow(1)
		a.wantWarning(events.CodeMessagesDropped)
		a.sync(0, `,"refused":{"status":0,"error":"prompt is too long"}`)
	})
	t.Run("nothing but blank messages", func(t *testing.T) {
		a := agent(t, "blank")
		a.add("user", "")
		for range 2 {
			a.sync(0, "")
			if a.last.Changed || len(a.sent) != 1 || len(a.last.Warnings) > 0 {
				t.Errorf("%s: %+v", a.sent, a.last)
			}
		}
		a.add("user", "Hello")
		a.sync(0, "")
		if len(a.sent) != 1 || !a.last.Changed {
			t.Errorf("%s: %+v", a.sent, a.last)
		}
	})
	t.Run("refuse", func(t *testing.T) {
		a := agent(t, "refuse")
		a.grow(3)
		a.history = slices.Clone(a.history[:3])
		a.add("user", "another way")
		a.wantRefused(events.CodeDiverged, `,"on_diverge":"refuse"`)
		a.sync(0, `,"on_diverge":"branch"`)
		branch := a.last.Session
		if branch == "" || env.turnsOf(branch) != 1 || len(env.lineage(a.session)) != 7 {
			t.Errorf("%+v", a.last)
		}
		a.call(7, 3)
		a.sync(0, `,"on_diverge":"branch"`) // the same branch
		if a.last.Session != branch || env.turnsOf(branch) != 2 {
			t.Errorf("%s, then %s with %d turns", branch, a.last.Session, env.turnsOf(branch))
		}
	})
	t.Run("ended and begun again", func(t *testing.T) {
		a := agent(t, "again")
		a.add("user", "Why does it fail? It must not, and the reason is in none of the logs.")
		for round := 1; round <= 3; round++ { // within the time that the server compares message ids
			a.sync(0, "")
			if got := env.turnsOf(a.session); got != round || a.last.Turns != 1 {
				t.Fatalf("begun %d times: %d turns in the log, %d in the session", round, got, a.last.Turns)
			}
			a.wantContext()
			env.publish(events.KindEnd, a.session, fmt.Appendf(nil, `{"id":"end-%d"}`, round))
			for end := time.Now().Add(waitLimit); ; time.Sleep(20 * time.Millisecond) {
				out, bad := a.request(0, `,"dry_run":true`)
				if bad == nil && out.Turns == 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("the session has not ended: %+v %+v", out, bad)
				}
			}
		}
	})
	t.Run("a shorter history", func(t *testing.T) {
		a := agent(t, "short")
		a.grow(12)
		whole := a.history
		before := env.turnsOf(a.session)
		for n := range len(whole) - 1 {
			a.history = whole[:n+1]
			a.sync(0, "")
			if env.turnsOf(a.session) != before {
				t.Fatalf("%d of %d messages were published", n+1, len(whole))
			}
		}
	})
	t.Run("sends back what it got", func(t *testing.T) {
		a := agent(t, "views")
		a.grow(1)
		kept := false
		for range 25 {
			a.history = slices.Clone(a.sent) // it has nothing else any more
			a.call(env.turnsOf(a.session), 60)
			a.sync(0, "")
			a.wantContext()
			kept = kept || a.last.Changed && a.last.Generation > 1 && slices.ContainsFunc(a.last.Parts, func(p events.SyncPart) bool { return p.Keep != nil && p.Keep[0] > 0 })
		}
		if a.last.Generation < 2 || a.last.Session != "" {
			t.Errorf("%+v", a.last)
		}
		if !kept {
			t.Error("nothing of its own is kept")
		}
		a.history = slices.Clone(a.sent)
		a.history = slices.Delete(a.history, 0, 1)
		a.add("user", "and on")
		turns := env.turnsOf(a.session)
		a.sync(0, "")
		a.wantWarning(events.CodeEditedView)
		if a.last.Session == "" || env.turnsOf(a.session) != turns {
			t.Errorf("%+v", a.last)
		}
	})
	t.Run("unstable", func(t *testing.T) {
		a := agent(t, "unstable")
		a.grow(2)
		for i := range 4 {
			a.history[1] = events.Raw(fmt.Sprintf(`{"role":"user","content":"Why does it fail?","now":%d}`, i))
			a.call(50+i, 20)
			a.sync(0, "")
		}
		a.wantWarning(events.CodeUnstableHistory)
		if w := a.last.Warnings[0]; !strings.Contains(w.Message, `"now"`) || a.last.Recorded {
			t.Errorf("%+v", a.last)
		}
	})
	t.Run("prefix", func(t *testing.T) {
		a := agent(t, "prefix")
		a.grow(3)
		out, bad := a.request(2, `,"prefix":{"count":2,"hash":"000102030405060708090a0b0c0d0e0f"}`)
		if bad != nil || out.Need != events.NeedAll {
			t.Errorf("%+v %+v", out, bad)
		}
	})
	t.Run("refused and dry", func(t *testing.T) {
		a := agent(t, "refused")
		a.grow(3)
		turns := env.turnsOf(a.session)
		view := a.last.View
		a.call(77, 60)
		a.sync(0, `,"dry_run":true`)
		if env.turnsOf(a.session) != turns || a.last.Known != 7 || a.last.Count != 7 {
			t.Errorf("%+v", a.last)
		}
		a.history = a.history[:7]
		more := fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":"prompt is too long: 1300 tokens > 1200 maximum"}`, view)
		a.sync(0, more)
		if !a.last.Changed || a.last.Budget.ContextWindow != 1200 || !a.last.Budget.WithinBudget {
			t.Errorf("%+v", a.last)
		}
		gen := a.last.Generation
		a.sync(0, more)
		if a.last.Generation != gen || len(env.logged(a.session, events.KindOverflow)) != 1 {
			t.Errorf("the same refusal again: %+v", a.last)
		}
		a.wantContext()
	})
	t.Run("two callers", func(t *testing.T) {
		a := agent(t, "two")
		a.grow(1)
		b := *a
		b.history = slices.Clone(a.history)
		a.call(5, 10)
		a.sync(0, "")
		b.add("user", "meanwhile")
		b.sync(0, "") // the later one is what the session has
		b.wantContext()
		if !slices.EqualFunc(env.lineage("two"), b.history, func(x, y events.Raw) bool { return string(x) == string(y) }) {
			t.Error("the session mixes both")
		}
	})
	t.Run("over HTTP", func(t *testing.T) {
		e := env.edge(r.worker, nil)
		body := `{"model":{"provider":"openai","name":"gpt-4o"},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"` + strings.Repeat("long ", 2<<20) + `"}]}`
		status, text := e.do(defaultToken, "POST", "/v1/sessions/default/chat%2F1/sync", body)
		var large events.SyncResponse
		if err := events.Unmarshal([]byte(text), &large); err != nil || status != 200 || large.Recorded || !large.Budget.WithinBudget || large.Warnings[0].Code != events.CodeTooLarge {
			t.Errorf("%d %.300s: %v", status, text, err)
		}
		body = strings.Replace(body, strings.Repeat("long ", 2<<20), "short", 1)
		status, text = e.do(defaultToken, "POST", "/v1/sessions/default/chat%2F1/sync?form=messages", body)
		var out events.SyncResponse
		if err := events.Unmarshal([]byte(text), &out); err != nil || status != 200 || len(out.Messages) != 2 || out.Count != 2 || out.Budget.Breakdown.SystemPrompt == 0 {
			t.Errorf("%d %.300s: %v", status, text, err)
		}
		if err := schematest.Validate("sync-response", []byte(text)); err != nil {
			t.Error(err)
		}
		body = `{"model":{"provider":"openai","name":"gpt-4o","context_window":100000000},"messages":[` + strings.Repeat(`{"role":"user","content":"`+strings.Repeat("word ", 600<<10)+`"},`, 3) + `{"role":"user","content":"go on"}]}`
		status, text = e.do(defaultToken, "POST", "/v1/sessions/default/large/sync?form=messages", body)
		var refused events.ServiceError
		if err := events.Unmarshal([]byte(text), &refused); err != nil || status != http.StatusRequestEntityTooLarge || !strings.Contains(refused.Hint, "form parts") {
			t.Errorf("messages of more bytes than a message: %d %.300s: %v", status, text, err)
		}
		if status, text = e.do(defaultToken, "POST", "/v1/sessions/default/large/sync", body); status != 200 {
			t.Errorf("the same as parts: %d %.300s", status, text)
		}
		body = `{"model":{"provider":"openai","name":"gpt-4o"},"messages":[]}`
		if status, text := e.do(acmeToken, "POST", "/v1/sessions/default/chat%2F1/sync", body); status != http.StatusForbidden {
			t.Errorf("another tenant: %d %s", status, text)
		}
		if status, text := e.do("", "POST", "/v1/sessions/default/chat%2F1/sync", body); status != http.StatusUnauthorized {
			t.Errorf("no token: %d %s", status, text)
		}
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
