package syncs_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/schema/schematest"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// end ends the session of an agent.
func end(a *workertest.SyncAgent, round int) {
	a.T.Helper()
	a.Env.Publish(events.KindEnd, a.Session, fmt.Appendf(nil, `{"id":"end-%s-%d"}`, a.Session, round))
	workertest.Until(a.T, "the session has ended", func() bool {
		out, bad := a.Request(0, `,"dry_run":true`)
		return bad == nil && out.Turns == 0
	})
}

func wantSyncRefused(a *workertest.SyncAgent, code events.Code, more string) {
	a.T.Helper()
	before := a.Env.LoggedTurns(a.Session)
	if out, bad := a.Request(0, more); bad == nil || bad.Code != code {
		a.T.Errorf("%s: %+v %+v, want %s", more, out, bad, code)
	}
	if after := a.Env.LoggedTurns(a.Session); after != before {
		a.T.Errorf("%s was published: %d turns, then %d", code, before, after)
	}
}

func wantWarning(a *workertest.SyncAgent, code events.Code) {
	a.T.Helper()
	if !slices.ContainsFunc(a.Last.Warnings, func(w events.SyncWarning) bool { return w.Code == code }) {
		a.T.Errorf("warnings %+v, want %s", a.Last.Warnings, code)
	}
}

// A sync of histories that are not simply longer than before.
func TestSyncCases(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	r := env.StartReady("a", observe.Listener{})
	agent := func(t *testing.T, session string) *workertest.SyncAgent {
		return &workertest.SyncAgent{T: t, Env: env, Session: session}
	}
	t.Run("another history", func(t *testing.T) {
		a := agent(t, "other")
		a.Work(3)
		kept := a.History
		a.History = nil
		a.Add("user", "You are a sub-agent. Look for the cause in the package retry, and in nothing else than that.")
		wantSyncRefused(a, events.CodeOtherHistory, `,"on_diverge":"refuse"`)
		a.Sync(0, `,"branch":"research"`) // a sub-agent
		if id, _ := events.SessionID("other/research"); a.Last.Session != "" && a.Last.Session != id || env.LoggedTurns(id) != 1 {
			t.Errorf("%+v", a.Last)
		}
		a.History = kept
		a.Sync(0, "")
		a.WantContext()
	})
	t.Run("a longest answer above the window", func(t *testing.T) {
		a := agent(t, "longest")
		a.Add("user", "Why does it fail?")
		messages, err := codec.Marshal(a.History)
		if err != nil {
			t.Fatal(err)
		}
		in := fmt.Sprintf(`{"session":"longest","model":{"provider":"openai","name":"gpt-4","max_output_tokens":128000},"wait_ms":8000,"messages":%s}`, messages)
		var out events.SyncResponse
		if err := codec.Unmarshal(a.Deliver([]byte(in)).Data, &out); err != nil || !out.Recorded || out.Budget.ContextWindow != 8192 || out.Budget.OutputReserve != 2868 {
			t.Errorf("%+v, %v", out, err)
		}
	})
	t.Run("compacted by its client", func(t *testing.T) {
		a := agent(t, "own")
		a.Work(4)
		n := len(a.History)
		a.History = append([]codec.Raw{codec.Raw(`{"role":"user","content":"A summary of mine: it fails in retry.go."}`)}, a.History[n-2:]...)
		a.Work(1)
		branch := a.Last.Session
		if got := env.Lineage(branch); len(got) != len(a.History) || len(env.Lineage(a.Session)) != n {
			t.Errorf("the branch has %d messages of %d, and the session %d", len(got), len(a.History), len(env.Lineage(a.Session)))
		}
		if fork := forkOf(env, branch); fork == nil || fork.Session != a.Session || fork.Turn != 4 {
			t.Errorf("it branched off %+v", fork)
		}
	})
	t.Run("an output cut on arrival", func(t *testing.T) { // B14
		a := agent(t, "arrival")
		a.Add("user", "Run it.")
		a.Call(1, 3)
		lines := "first line\\n" + strings.Repeat("line\\n", 300) + "last line"
		a.History[2] = codec.Raw(fmt.Sprintf(`{"role":"tool","tool_call_id":"call_1","content":"%s","x_native":1}`, lines))
		a.Sync(0, `,"policy":{"tool_output":{"when":"arrival","max_lines":100}}`)
		if n := len(a.Last.Parts); n != 2 || a.Last.Parts[1].Edit == nil || *a.Last.Parts[1].Edit != 2 || len(a.Sent) != 3 {
			t.Fatalf("%+v", a.Last)
		}
		cut := string(a.Sent[2])
		if strings.Contains(cut, "first line") || !strings.Contains(cut, "last line") || !strings.Contains(cut, "[Output truncated from ") || !strings.Contains(cut, `"call_1"`) {
			t.Errorf("%.400s", cut)
		}
		a.WantContext()
		a.Call(2, 3)
		a.Sync(0, "") // the caller still holds the whole
		if string(a.Sent[2]) != cut || len(a.Sent) != 5 || len(env.Lineage(a.Session)) != 5 {
			t.Errorf("the next call: %.400s", a.Sent[2])
		}
		a.WantContext()
		a.History[2] = a.Sent[2]
		a.Call(3, 3)
		a.Sync(0, "") // now it holds what it was given
		if string(a.Sent[2]) != cut || len(env.Lineage(a.Session)) != 7 {
			t.Errorf("with its own preview: %.400s", a.Sent[2])
		}
		a.WantContext()
	})
	t.Run("members that no dialect defines", func(t *testing.T) {
		a := agent(t, "unknown")
		a.Work(2)
		a.History = append(a.History, codec.Raw(`{"role":"user","content":"","user_input_multi_content":[{"type":"text","text":"Look at this."}]}`))
		a.Sync(0, "")
		if n := len(a.Sent); n != len(a.History) || string(a.Sent[n-1]) != string(a.History[n-1]) || len(a.Last.Warnings) > 0 {
			t.Errorf("%+v: %s", a.Last, a.Sent[n-1])
		}
		a.History = append(a.History, codec.Raw(`{"role":"user","content":" "}`))
		a.Work(1)
		wantWarning(a, events.CodeMessagesDropped)
		a.Sync(0, `,"refused":{"status":0,"error":"prompt is too long"}`)
	})
	t.Run("nothing but blank messages", func(t *testing.T) {
		a := agent(t, "blank")
		a.Add("user", "")
		for range 2 {
			a.Sync(0, "")
			if a.Last.Changed || len(a.Sent) != 1 || len(a.Last.Warnings) > 0 {
				t.Errorf("%s: %+v", a.Sent, a.Last)
			}
		}
		a.Add("user", "Hello")
		a.Sync(0, "")
		if len(a.Sent) != 1 || !a.Last.Changed {
			t.Errorf("%s: %+v", a.Sent, a.Last)
		}
	})
	t.Run("refuse", func(t *testing.T) {
		a := agent(t, "refuse")
		a.Work(3)
		a.History = slices.Clone(a.History[:3])
		a.Add("user", "another way")
		wantSyncRefused(a, events.CodeDiverged, `,"on_diverge":"refuse"`)
		a.Sync(0, `,"on_diverge":"branch"`)
		branch := a.Last.Session
		if branch == "" || env.LoggedTurns(branch) != 1 || len(env.Lineage(a.Session)) != 7 {
			t.Errorf("%+v", a.Last)
		}
		a.Call(7, 3)
		a.Sync(0, `,"on_diverge":"branch"`) // the same branch
		if a.Last.Session != branch || env.LoggedTurns(branch) != 2 {
			t.Errorf("%s, then %s with %d turns", branch, a.Last.Session, env.LoggedTurns(branch))
		}
	})
	t.Run("ended and begun again", func(t *testing.T) {
		a := agent(t, "again")
		a.Add("user", "Why does it fail? It must not, and the reason is in none of the logs.")
		for round := 1; round <= 3; round++ { // within the time that the server compares message ids
			a.Sync(0, "")
			if got := env.LoggedTurns(a.Session); got != round || a.Last.Turns != 1 {
				t.Fatalf("begun %d times: %d turns in the log, %d in the session", round, got, a.Last.Turns)
			}
			a.WantContext()
			end(a, round)
		}
	})
	t.Run("ended and begun again with another policy", func(t *testing.T) {
		a := agent(t, "policies")
		for round, lines := range []int{100, 50} {
			a.History = nil
			a.Add("user", "Run it.")
			a.Call(1, 3)
			a.History[2] = codec.Raw(fmt.Sprintf(`{"role":"tool","tool_call_id":"call_1","content":"%s"}`, strings.Repeat("line\\n", 300)))
			a.Sync(0, fmt.Sprintf(`,"policy":{"tool_output":{"when":"arrival","max_lines":%d}}`, lines))
			a.History[2] = a.Sent[2]
			a.Call(2, 3)
			a.Sync(0, "") // compared with the view of this session, not with that of the one before
			if a.Last.Known != 3 || a.Last.Session != "" {
				t.Errorf("a cut to %d lines is not recognised: %+v", lines, a.Last)
			}
			a.WantContext()
			end(a, round)
		}
	})
	t.Run("a shorter history", func(t *testing.T) {
		a := agent(t, "short")
		a.Work(12)
		whole := a.History
		before := env.LoggedTurns(a.Session)
		for n := range len(whole) - 1 {
			a.History = whole[:n+1]
			a.Sync(0, "")
			if env.LoggedTurns(a.Session) != before {
				t.Fatalf("%d of %d messages were published", n+1, len(whole))
			}
		}
	})
	t.Run("sends back what it got", func(t *testing.T) {
		a := agent(t, "views")
		a.Work(1)
		kept := false
		for range 25 {
			a.History = slices.Clone(a.Sent) // it has nothing else any more
			a.Call(env.LoggedTurns(a.Session), 60)
			a.Sync(0, "")
			a.WantContext()
			kept = kept || a.Last.Changed && a.Last.Generation > 1 && slices.ContainsFunc(a.Last.Parts, func(p events.SyncPart) bool { return p.Keep != nil && p.Keep[0] > 0 })
		}
		if a.Last.Generation < 2 || a.Last.Session != "" {
			t.Errorf("%+v", a.Last)
		}
		if !kept {
			t.Error("nothing of its own is kept")
		}
		a.History = slices.Clone(a.Sent)
		a.History = slices.Delete(a.History, 0, 1)
		a.Add("user", "and on")
		turns := env.LoggedTurns(a.Session)
		a.Sync(0, "")
		wantWarning(a, events.CodeEditedView)
		if a.Last.Session == "" || env.LoggedTurns(a.Session) != turns {
			t.Errorf("%+v", a.Last)
		}
	})
	t.Run("unstable", func(t *testing.T) {
		a := agent(t, "unstable")
		a.Work(2)
		for i := range 4 {
			a.History[1] = codec.Raw(fmt.Sprintf(`{"role":"user","content":"Why does it fail?","now":%d}`, i))
			a.Call(50+i, 20)
			a.Sync(0, "")
		}
		wantWarning(a, events.CodeUnstableHistory)
		if w := a.Last.Warnings[0]; !strings.Contains(w.Message, `"now"`) || a.Last.Recorded {
			t.Errorf("%+v", a.Last)
		}
	})
	t.Run("prefix", func(t *testing.T) {
		a := agent(t, "prefix")
		a.Work(3)
		out, bad := a.Request(2, `,"prefix":{"count":2,"hash":"000102030405060708090a0b0c0d0e0f"}`)
		if bad != nil || out.Need != events.NeedAll {
			t.Errorf("%+v %+v", out, bad)
		}
	})
	t.Run("refused and dry", func(t *testing.T) {
		a := agent(t, "refused")
		a.Work(3)
		turns := env.LoggedTurns(a.Session)
		view := a.Last.View
		a.Call(77, 60)
		a.Sync(0, `,"dry_run":true`)
		if env.LoggedTurns(a.Session) != turns || a.Last.Known != 7 || a.Last.Count != 7 {
			t.Errorf("%+v", a.Last)
		}
		a.History = a.History[:7]
		more := fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":"prompt is too long: 1300 tokens > 1200 maximum"}`, view)
		a.Sync(0, more)
		if !a.Last.Changed || a.Last.Budget.ContextWindow != 1200 || !a.Last.Budget.WithinBudget {
			t.Errorf("%+v", a.Last)
		}
		gen := a.Last.Generation
		a.Sync(0, more)
		if a.Last.Generation != gen || len(env.Logged(a.Session, events.KindOverflow)) != 1 {
			t.Errorf("the same refusal again: %+v", a.Last)
		}
		a.WantContext()
	})
	t.Run("two callers", func(t *testing.T) {
		a := agent(t, "two")
		a.Work(1)
		b := *a
		b.History = slices.Clone(a.History)
		a.Call(5, 10)
		a.Sync(0, "")
		b.Add("user", "meanwhile")
		b.Sync(0, "") // the later one is what the session has
		b.WantContext()
		if !slices.EqualFunc(env.Lineage("two"), b.History, func(x, y codec.Raw) bool { return string(x) == string(y) }) {
			t.Error("the session mixes both")
		}
	})
	t.Run("over HTTP", func(t *testing.T) {
		e := env.StartEdge(r.Worker, nil)
		body := `{"model":{"provider":"openai","name":"gpt-4o"},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"` + strings.Repeat("long ", 2<<20) + `"}]}`
		status, text := e.Do(workertest.DefaultToken, "POST", "/v1/sessions/default/chat%2F1/sync", body)
		var large events.SyncResponse
		if err := codec.Unmarshal([]byte(text), &large); err != nil || status != 200 || large.Recorded || !large.Budget.WithinBudget || large.Warnings[0].Code != events.CodeTooLarge {
			t.Errorf("%d %.300s: %v", status, text, err)
		}
		body = strings.Replace(body, strings.Repeat("long ", 2<<20), "short", 1)
		status, text = e.Do(workertest.DefaultToken, "POST", "/v1/sessions/default/chat%2F1/sync?form=messages", body)
		var out events.SyncResponse
		if err := codec.Unmarshal([]byte(text), &out); err != nil || status != 200 || len(out.Messages) != 2 || out.Count != 2 || out.Budget.Breakdown.SystemPrompt == 0 {
			t.Errorf("%d %.300s: %v", status, text, err)
		}
		if err := schematest.Validate("sync-response", []byte(text)); err != nil {
			t.Error(err)
		}
		body = `{"model":{"provider":"openai","name":"gpt-4o","context_window":100000000},"messages":[` +
			strings.Repeat(`{"role":"user","content":"`+strings.Repeat("word ", 600<<10)+`"},`, 3) + `{"role":"user","content":"go on"}]}`
		status, text = e.Do(workertest.DefaultToken, "POST", "/v1/sessions/default/large/sync?form=messages", body)
		var refused events.ServiceError
		if err := codec.Unmarshal([]byte(text), &refused); err != nil || status != http.StatusRequestEntityTooLarge || !strings.Contains(refused.Hint, "form parts") {
			t.Errorf("messages of more bytes than a message: %d %.300s: %v", status, text, err)
		}
		if status, text = e.Do(workertest.DefaultToken, "POST", "/v1/sessions/default/large/sync", body); status != 200 {
			t.Errorf("the same as parts: %d %.300s", status, text)
		}
		body = `{"model":{"provider":"openai","name":"gpt-4o"},"messages":[]}`
		if status, text := e.Do(workertest.AcmeToken, "POST", "/v1/sessions/default/chat%2F1/sync", body); status != http.StatusForbidden {
			t.Errorf("another tenant: %d %s", status, text)
		}
		if status, text := e.Do("", "POST", "/v1/sessions/default/chat%2F1/sync", body); status != http.StatusUnauthorized {
			t.Errorf("no token: %d %s", status, text)
		}
	})
}
