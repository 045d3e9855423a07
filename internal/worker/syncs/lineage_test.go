package syncs_test

import (
	"fmt"
	"slices"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// forkOf is where a session branched off by its first turn in the log.
func forkOf(env *workertest.Env, session string) *events.Fork {
	env.T.Helper()
	turns := env.Logged(session, events.KindTurn)
	if len(turns) == 0 {
		return nil
	}
	turn, err := events.DecodeTurn(turns[0])
	if err != nil {
		env.T.Fatal(err)
	}
	return turn.Fork
}

// A history is never locked out of its session. An edit of any message is taken; nothing that is
// another history replaces the session's.
func TestSyncLineages(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	stop := env.Run("a", observe.Listener{})
	agent := func(t *testing.T, session string, steps int) *workertest.SyncAgent {
		a := &workertest.SyncAgent{T: t, Env: env, Session: session}
		a.Work(steps)
		return a
	}
	edit := func(a *workertest.SyncAgent, i int, text string) {
		a.History = slices.Clone(a.History)
		a.History[i] = codec.Raw(fmt.Sprintf(`{"role":"user","content":%q}`, text))
	}
	t.Run("edits at every index", func(t *testing.T) {
		for i := range 5 {
			a := &workertest.SyncAgent{T: t, Env: env, Session: fmt.Sprintf("edit-%d", i)}
			for j := range 5 {
				a.Add("user", fmt.Sprintf("message %d", j))
				a.Sync(0, "")
			}
			before := a.History
			edit(a, i, "edited")
			for range 2 { // and again, as after an answer that was lost
				a.Sync(0, "")
				a.WantHeld()
				if root := i == 0; (a.Last.Session != "") != root || root && events.BranchID(a.Session, a.Last.Branch) != a.Last.Session {
					t.Errorf("index %d: %+v", i, a.Last)
				}
			}
			a.Add("user", "and on")
			a.Sync(0, "")
			a.WantHeld()
			edited, holder := a.History, a.Holder()
			a.History = before // the edit is undone
			a.Add("user", "as it was")
			a.Sync(0, "")
			a.WantHeld()
			if a.Holder() == holder {
				t.Errorf("index %d: undone, it replaced the edit", i)
			}
			env.WantLineage(holder, edited)
		}
	})
	t.Run("the model of the session", func(t *testing.T) {
		a := agent(t, "settings", 1)
		in := `{"session":"settings","messages":[{"role":"user","content":"another root"}]}`
		var out events.SyncResponse
		if err := codec.Unmarshal(a.Deliver([]byte(in)).Data, &out); err != nil || out.Session == "" || out.Budget.ContextWindow != 4000 {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("a refusal in a branch", func(t *testing.T) {
		a := agent(t, "refusals", 2)
		parent := a.History
		a.History = nil
		a.Add("user", "another root")
		for i := range 5 {
			a.Call(i, 60)
			a.Sync(0, "")
		}
		branch := a.Last.Session
		a.Sync(0, fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":"prompt is too long: 1300 tokens > 1200 maximum"}`, a.Last.View))
		if a.Last.Session != branch || !a.Last.Changed || a.Last.Budget.ContextWindow != 1200 || !a.Last.Budget.WithinBudget {
			t.Errorf("%+v", a.Last)
		}
		if of, all := len(env.Logged(branch, events.KindOverflow)), len(env.Logged(a.Session, events.KindOverflow)); of != 1 || all != 0 {
			t.Errorf("%d refusals of the branch, %d of the session", of, all)
		}
		a.History = parent
		a.Sync(0, "")
		if a.Last.Budget.ContextWindow != 4000 {
			t.Errorf("%+v", a.Last)
		}
	})
	t.Run("a replacement of the first message", func(t *testing.T) {
		a := &workertest.SyncAgent{T: t, Env: env, Session: "helo"}
		for _, text := range []string{"helo", "hello", "hullo"} {
			a.History = nil
			a.Add("user", text)
			a.Sync(0, `,"on_diverge":"replace"`)
			a.WantHeld()
			if a.Last.Session != "" {
				t.Errorf("%+v", a.Last)
			}
		}
	})
	t.Run("a sub-agent with the same end", func(t *testing.T) {
		for _, id := range []string{`,"id":"call_1"`, ``} {
			a := &workertest.SyncAgent{T: t, Env: env, Session: "equal" + fmt.Sprint(len(id))}
			call := codec.Raw(`{"role":"assistant","content":null,"tool_calls":[{"type":"function"` + id + `,"function":{"name":"read_file","arguments":"{\"path\":\"some/long/path/of/a/file.go\"}"}}]}`)
			result := codec.Raw(`{"role":"tool","tool_call_id":"call_1","content":"the text of the file, which both of them have read just now, the same for both"}`)
			if id == "" {
				call = codec.Raw(`{"role":"assistant","content":"I have read the text of the file, which both of them have read just now."}`)
				result = codec.Raw(`{"role":"user","content":"Go on, both of you, and list all that you find there."}`)
			}
			a.Add("user", "the parent")
			a.History = append(a.History, call, result)
			a.Sync(0, "")
			parent := a.History
			a.History = nil
			a.Add("user", "the sub-agent")
			for range 3 {
				a.History = append(a.History, call, result)
				a.Sync(0, "")
				a.WantHeld()
				if a.Last.Session == "" {
					t.Error("it is the session")
				}
			}
			env.WantLineage(a.Session, parent)
			a.History = parent
			a.Add("user", "go on")
			a.Sync(0, "")
			a.WantHeld()
			if a.Last.Session != "" {
				t.Errorf("%+v", a.Last)
			}
		}
	})
	t.Run("alternating", func(t *testing.T) {
		start := agent(t, "alternate", 2)
		var all []*workertest.SyncAgent
		for i := range 3 {
			one := *start
			one.History = slices.Clone(start.History)
			one.Add("user", fmt.Sprintf("lineage %d", i))
			all = append(all, &one)
		}
		for step := range 12 {
			for i, a := range all {
				a.Call(100*i+step, 60)
				a.Sync(0, "")
				a.WantHeld()
			}
		}
		holders := map[string]bool{}
		for i, a := range all {
			holders[a.Holder()] = true
			if a.Last.Generation == 0 || a.Last.Known != int64(len(a.History)-2) && a.Last.Known == 0 {
				t.Errorf("lineage %d: %+v", i, a.Last)
			}
		}
		if len(holders) != 3 {
			t.Errorf("they are in %v", holders)
		}
	})
	t.Run("new roots", func(t *testing.T) {
		a := agent(t, "roots", 2)
		parent := a.History
		for i := range 6 { // a time in the first message
			a.History = nil
			a.Add("user", fmt.Sprintf("It is %d o'clock.", i))
			a.Call(i, 20)
			a.Sync(0, "")
			if first := i == 0; (a.Last.Session != "") != first {
				t.Errorf("root %d: %+v", i, a.Last)
			}
		}
		a.Sync(0, "") // it comes again
		a.WantHeld()
		if a.Last.Session == "" {
			t.Errorf("%+v", a.Last)
		}
		env.WantLineage(a.Session, parent)
		a.History = parent
		a.Call(77, 20)
		a.Sync(0, "")
		a.WantHeld()
		a.History = nil
		a.Add("user", "the session went on in between")
		a.Sync(0, "")
		a.WantHeld()
		if a.Last.Session == "" {
			t.Errorf("%+v", a.Last)
		}
	})
	t.Run("a worker without memory", func(t *testing.T) {
		a := agent(t, "memory", 2)
		one, other := a.History, []codec.Raw(nil)
		b := *a
		b.History = slices.Clone(a.History[:3])
		for i := range 4 {
			b.Call(200+i, 20)
			b.Sync(0, "")
			b.WantHeld()
			other = b.History
			a.History = one
			a.Call(100+i, 20)
			a.Sync(0, "")
			a.WantHeld()
			one = a.History
			stop()
			stop = env.Run(fmt.Sprintf("memory-%d", i), observe.Listener{})
		}
		env.WantLineage(a.Holder(), one)
		env.WantLineage(b.Holder(), other)
		if n := env.LoggedTurns(a.Holder()) + env.LoggedTurns(b.Holder()); n > 12 {
			t.Errorf("%d turns", n)
		}
	})
	t.Run("a prefix that is none", func(t *testing.T) {
		a := &workertest.SyncAgent{T: t, Env: env, Session: "prefix-fits"}
		a.Add("user", "Read it.")
		a.Call(1, 3)
		a.Add("assistant", "I have read it.")
		a.Add("user", "Once more.")
		a.History = append(a.History, codec.Raw(`{"role":"assistant","content":null,"tool_calls":[`+
			`{"id":"call_2","type":"function","function":{"name":"read_file","arguments":"{}"}},`+
			`{"id":"call_3","type":"function","function":{"name":"read_file","arguments":"{}"}}]}`))
		a.Sync(0, "")
		count, hash := a.Last.Count, a.Last.Hash
		result := func(id string) string { return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"text"}`, id) }
		for _, x := range []struct {
			count int64
			tail  string
			all   bool
		}{
			{count, result("call_2") + "," + result("call_3"), false},
			{count, result("call_3"), false},
			{count, result("call_9"), true},
			{count, result("call_2") + "," + result("call_2"), true},
			{count, `{"role":"user","content":"Never mind."}`, true},
			{count - 1, result("call_2"), true},
			{count + 1, result("call_2"), true},
			{count, ``, false},
		} {
			in := fmt.Sprintf(`{"session":%q,"dry_run":true,"prefix":{"count":%d,"hash":%q},"messages":[%s]}`, a.Session, x.count, hash, x.tail)
			var out events.SyncResponse
			if err := codec.Unmarshal(a.Deliver([]byte(in)).Data, &out); err != nil || (out.Need == events.NeedAll) != x.all {
				t.Errorf("%d, %s: %+v %v", x.count, x.tail, out, err)
			}
		}
	})
}
