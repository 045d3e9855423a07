package worker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"compactd/internal/align"
	"compactd/internal/events"
	"compactd/internal/worker/observe"
)

// forkOf is where a session branched off by its first turn in the log.
func (env *testEnv) forkOf(session string) *events.Fork {
	env.t.Helper()
	turns := env.logged(session, events.KindTurn)
	if len(turns) == 0 {
		return nil
	}
	turn, err := events.DecodeTurn(turns[0])
	if err != nil {
		env.t.Fatal(err)
	}
	return turn.Fork
}

// knownTurns is how many turns a session has.
func (env *testEnv) knownTurns(session string) int64 {
	env.t.Helper()
	reply, err := env.conn.Request("compactd.stats", fmt.Appendf(nil, `{"session":%q}`, session), waitLimit)
	if err != nil {
		env.t.Fatal(err)
	}
	var out events.StatsResponse
	if err := events.Unmarshal(reply.Data, &out); err != nil {
		env.t.Fatal(err)
	}
	return out.Turns
}

// wantHistory checks which history a session has.
func (env *testEnv) wantHistory(session string, want []events.Raw) {
	env.t.Helper()
	if got := env.lineage(session); events.OpenAI.DigestOf(got) != events.OpenAI.DigestOf(want) {
		env.t.Errorf("%s has %d messages, want %d:\n%.600s\n%.600s", session, len(got), len(want), got, want)
	}
}

// holder is the session that has the history of the agent after a sync.
func (a *syncAgent) holder() string {
	if a.last.Session != "" {
		return a.last.Session
	}
	return a.session
}

// fits checks that the last answer is inside the window and valid, and that its session has the
// history once.
func (a *syncAgent) fits() {
	a.t.Helper()
	if !a.last.Budget.WithinBudget {
		a.t.Errorf("%+v", a.last.Budget)
	}
	a.env.wantHistory(a.holder(), a.history[align.Read(events.OpenAI, a.history, 0).Lead:])
}

// A history is never locked out of its session. An edit of any message is taken; nothing that is
// another history replaces the session's.
func TestSyncLineages(t *testing.T) {
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutSummaries())
	stop := env.run("a", observe.Listener{})
	agent := func(t *testing.T, session string, steps int) *syncAgent {
		a := &syncAgent{t: t, env: env, session: session}
		a.grow(steps)
		return a
	}
	edit := func(a *syncAgent, i int, text string) {
		a.history = slices.Clone(a.history)
		a.history[i] = events.Raw(fmt.Sprintf(`{"role":"user","content":%q}`, text))
	}
	t.Run("edits at every index", func(t *testing.T) {
		for i := range 5 {
			a := &syncAgent{t: t, env: env, session: fmt.Sprintf("edit-%d", i)}
			for j := range 5 {
				a.add("user", fmt.Sprintf("message %d", j))
				a.sync(0, "")
			}
			before := a.history
			edit(a, i, "edited")
			for range 2 { // and again, as after an answer that was lost
				a.sync(0, "")
				a.fits()
				if root := i == 0; (a.last.Session != "") != root || root && events.BranchID(a.session, a.last.Branch) != a.last.Session {
					t.Errorf("index %d: %+v", i, a.last)
				}
			}
			a.add("user", "and on")
			a.sync(0, "")
			a.fits()
			edited, holder := a.history, a.holder()
			a.history = before // the edit is undone
			a.add("user", "as it was")
			a.sync(0, "")
			a.fits()
			if a.holder() == holder {
				t.Errorf("index %d: undone, it replaced the edit", i)
			}
			env.wantHistory(holder, edited)
		}
	})
	t.Run("the model of the session", func(t *testing.T) {
		a := agent(t, "settings", 1)
		in := `{"session":"settings","messages":[{"role":"user","content":"another root"}]}`
		var out events.SyncResponse
		if err := events.Unmarshal(a.deliver([]byte(in)).Data, &out); err != nil || out.Session == "" || out.Budget.ContextWindow != 4000 {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("a refusal in a branch", func(t *testing.T) {
		a := agent(t, "refusals", 2)
		parent := a.history
		a.history = nil
		a.add("user", "another root")
		for i := range 5 {
			a.call(i, 60)
			a.sync(0, "")
		}
		branch := a.last.Session
		a.sync(0, fmt.Sprintf(`,"refused":{"view":%q,"status":400,"error":"prompt is too long: 1300 tokens > 1200 maximum"}`, a.last.View))
		if a.last.Session != branch || !a.last.Changed || a.last.Budget.ContextWindow != 1200 || !a.last.Budget.WithinBudget {
			t.Errorf("%+v", a.last)
		}
		if of, all := len(env.logged(branch, events.KindOverflow)), len(env.logged(a.session, events.KindOverflow)); of != 1 || all != 0 {
			t.Errorf("%d refusals of the branch, %d of the session", of, all)
		}
		a.history = parent
		a.sync(0, "")
		if a.last.Budget.ContextWindow != 4000 {
			t.Errorf("%+v", a.last)
		}
	})
	t.Run("a replacement of the first message", func(t *testing.T) {
		a := &syncAgent{t: t, env: env, session: "helo"}
		for _, text := range []string{"helo", "hello", "hullo"} {
			a.history = nil
			a.add("user", text)
			a.sync(0, `,"on_diverge":"replace"`)
			a.fits()
			if a.last.Session != "" {
				t.Errorf("%+v", a.last)
			}
		}
	})
	t.Run("a sub-agent with the same end", func(t *testing.T) {
		for _, id := range []string{`,"id":"call_1"`, ``} {
			a := &syncAgent{t: t, env: env, session: "equal" + fmt.Sprint(len(id))}
			call := events.Raw(`{"role":"assistant","content":null,"tool_calls":[{"type":"function"` + id + `,"function":{"name":"read_file","arguments":"{\"path\":\"some/long/path/of/a/file.go\"}"}}]}`)
			result := events.Raw(`{"role":"tool","tool_call_id":"call_1","content":"the text of the file, which both of them have read just now, the same for both"}`)
			if id == "" {
				call = events.Raw(`{"role":"assistant","content":"I have read the text of the file, which both of them have read just now."}`)
				result = events.Raw(`{"role":"user","content":"Go on, both of you, and list all that you find there."}`)
			}
			a.add("user", "the parent")
			a.history = append(a.history, call, result)
			a.sync(0, "")
			parent := a.history
			a.history = nil
			a.add("user", "the sub-agent")
			for range 3 {
				a.history = append(a.history, call, result)
				a.sync(0, "")
				a.fits()
				if a.last.Session == "" {
					t.Error("it is the session")
				}
			}
			env.wantHistory(a.session, parent)
			a.history = parent
			a.add("user", "go on")
			a.sync(0, "")
			a.fits()
			if a.last.Session != "" {
				t.Errorf("%+v", a.last)
			}
		}
	})
	t.Run("alternating", func(t *testing.T) {
		start := agent(t, "alternate", 2)
		var all []*syncAgent
		for i := range 3 {
			one := *start
			one.history = slices.Clone(start.history)
			one.add("user", fmt.Sprintf("lineage %d", i))
			all = append(all, &one)
		}
		for step := range 12 {
			for i, a := range all {
				a.call(100*i+step, 60)
				a.sync(0, "")
				a.fits()
			}
		}
		holders := map[string]bool{}
		for i, a := range all {
			holders[a.holder()] = true
			if a.last.Generation == 0 || a.last.Known != int64(len(a.history)-2) && a.last.Known == 0 {
				t.Errorf("lineage %d: %+v", i, a.last)
			}
		}
		if len(holders) != 3 {
			t.Errorf("they are in %v", holders)
		}
	})
	t.Run("new roots", func(t *testing.T) {
		a := agent(t, "roots", 2)
		parent := a.history
		for i := range 6 { // a time in the first message
			a.history = nil
			a.add("user", fmt.Sprintf("It is %d o'clock.", i))
			a.call(i, 20)
			a.sync(0, "")
			if first := i == 0; (a.last.Session != "") != first {
				t.Errorf("root %d: %+v", i, a.last)
			}
		}
		a.sync(0, "") // it comes again
		a.fits()
		if a.last.Session == "" {
			t.Errorf("%+v", a.last)
		}
		env.wantHistory(a.session, parent)
		a.history = parent
		a.call(77, 20)
		a.sync(0, "")
		a.fits()
		a.history = nil
		a.add("user", "the session went on in between")
		a.sync(0, "")
		a.fits()
		if a.last.Session == "" {
			t.Errorf("%+v", a.last)
		}
	})
	t.Run("a worker without memory", func(t *testing.T) {
		a := agent(t, "memory", 2)
		one, other := a.history, []events.Raw(nil)
		b := *a
		b.history = slices.Clone(a.history[:3])
		for i := range 4 {
			b.call(200+i, 20)
			b.sync(0, "")
			b.fits()
			other = b.history
			a.history = one
			a.call(100+i, 20)
			a.sync(0, "")
			a.fits()
			one = a.history
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			stop = env.run(fmt.Sprintf("memory-%d", i), observe.Listener{})
		}
		env.wantHistory(a.holder(), one)
		env.wantHistory(b.holder(), other)
		if n := env.turnsOf(a.holder()) + env.turnsOf(b.holder()); n > 12 {
			t.Errorf("%d turns", n)
		}
	})
	t.Run("a prefix that is none", func(t *testing.T) {
		a := &syncAgent{t: t, env: env, session: "prefix-fits"}
		a.add("user", "Read it.")
		a.call(1, 3)
		a.add("assistant", "I have read it.")
		a.add("user", "Once more.")
		a.history = append(a.history, events.Raw(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_2","type":"function","function":{"name":"read_file","arguments":"{}"}},{"id":"call_3","type":"function","function":{"name":"read_file","arguments":"{}"}}]}`))
		a.sync(0, "")
		count, hash := a.last.Count, a.last.Hash
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
			in := fmt.Sprintf(`{"session":%q,"dry_run":true,"prefix":{"count":%d,"hash":%q},"messages":[%s]}`, a.session, x.count, hash, x.tail)
			var out events.SyncResponse
			if err := events.Unmarshal(a.deliver([]byte(in)).Data, &out); err != nil || (out.Need == events.NeedAll) != x.all {
				t.Errorf("%d, %s: %+v %v", x.count, x.tail, out, err)
			}
		}
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// An event that ends a session, or erases it, does so with its branches, also with those of branches.
func TestSyncFamilies(t *testing.T) {
	for _, kind := range []events.Kind{events.KindEnd, events.KindForget} {
		t.Run(string(kind), func(t *testing.T) {
			env := newEnv(t, t.TempDir())
			env.config = newConfig(t, withoutSummaries())
			stop := env.run("a", observe.Listener{})
			alone := &syncAgent{t: t, env: env, session: "b64-cy9vdGhlcg"} // s/other, which is no branch
			alone.grow(1)
			a := &syncAgent{t: t, env: env, session: "s"}
			a.grow(2)
			all := []string{"s"}
			note := func() {
				t.Helper()
				if a.fits(); slices.Contains(all, a.holder()) {
					t.Fatalf("it is in %s", a.holder())
				}
				all = append(all, a.holder())
			}
			start := a.history
			a.history = slices.Clone(start[:3])
			a.add("user", "an edit")
			a.sync(0, "")
			a.history = start // undone
			a.call(9, 9)
			a.sync(0, "")
			note()
			a.history = slices.Clone(a.history[:5])
			a.add("user", "an edit in the branch")
			a.sync(0, "")
			a.history = slices.Clone(start)
			a.call(9, 9)
			a.sync(0, "") // undone in the branch
			note()
			a.history = nil
			a.add("user", "a sub-agent "+strings.Repeat("with a long text ", 9))
			a.sync(0, "")
			note()
			a.history = nil
			a.add("user", "a sub-agent with a name")
			out, bad := a.request(0, `,"branch":"research"`)
			if bad != nil || out.Turns != 1 {
				t.Fatalf("%+v %+v", out, bad)
			}
			all = append(all, events.BranchID("s", "research"))
			env.awaitBranches("s", 3)
			env.awaitBranches(all[1], 1)
			env.publish(kind, "s", []byte(`{"id":"over"}`))
			for _, session := range all {
				for end := time.Now().Add(waitLimit); env.knownTurns(session) > 0; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%s goes on", session)
					}
				}
				for end := time.Now().Add(waitLimit); kind == events.KindForget && env.turnsOf(session) > 0; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("the log has turns of %s", session)
					}
				}
			}
			if env.knownTurns(alone.session) == 0 {
				t.Error("a session with a like name is gone")
			}
			a.history = nil
			a.grow(1) // it begins again, and has no branches
			if a.last.Session != "" || a.last.Turns != 1 {
				t.Errorf("%+v", a.last)
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// awaitBranches waits until the log names so many branches of a session.
func (env *testEnv) awaitBranches(session string, n int) {
	env.t.Helper()
	for end := time.Now().Add(waitLimit); len(env.logged(session, events.KindBranch)) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			env.t.Fatalf("the log names %d branches of %s, want %d", len(env.logged(session, events.KindBranch)), session, n)
		}
	}
}

// A client that follows a session, or has its token, sees its branches, and nothing of another session.
func TestSyncFamiliesSeen(t *testing.T) {
	env := newEnv(t, t.TempDir())
	env.config = newConfig(t, withoutSummaries())
	r := env.start("a", observe.Listener{})
	<-r.worker.Ready()
	e := env.edge(r.worker, nil)
	e.write(tokenLine(defaultToken, "default agent") + tokenLine(sessionToken, "default/s session"))
	if err := e.edge.Reload(); err != nil {
		t.Fatal(err)
	}
	other := &syncAgent{t: t, env: env, session: "b64-cy9vdGhlcg"} // s/other, which is no branch
	other.grow(1)
	all, stop := e.follow("s?branches=true", "")
	defer stop()
	begin := (<-all).id
	own, stopOwn := e.follow("s", "")
	defer stopOwn()
	<-own
	a := &syncAgent{t: t, env: env, session: "s"}
	a.grow(2)
	kept := a.history
	a.history = nil
	a.add("user", "a sub-agent "+strings.Repeat("with a long text ", 9))
	other.grow(20)
	a.grow(20)
	branch := a.last.Session
	if branch == "" || a.last.Generation == 0 || other.last.Generation == 0 {
		t.Fatalf("%+v", a.last)
	}
	a.history = slices.Clone(kept)
	a.grow(20)
	again, stopAgain := e.follow("s?branches=true", begin)
	defer stopAgain()
	of := func(from <-chan sse) (list []string) {
		for {
			got := named(t, from)
			var about struct {
				Session string         `json:"session"`
				Through events.Through `json:"through"`
			}
			if err := events.Unmarshal([]byte(got.data), &about); err != nil {
				t.Fatal(err)
			}
			list = append(list, got.id+" "+got.event+" "+about.Session)
			if about.Session == "" && got.event == string(events.KindCompacted) && about.Through.Turn >= 20 {
				return list
			}
		}
	}
	live, resumed, alone := of(all), of(again), of(own)
	ofBranch := func(s string) bool { return strings.HasSuffix(s, " "+branch) }
	if !slices.Equal(live, resumed) || !slices.ContainsFunc(live, ofBranch) {
		t.Errorf("live\n%q\nresumed\n%q", live, resumed)
	}
	if want := slices.DeleteFunc(live, ofBranch); !slices.Equal(alone, want) {
		t.Errorf("without branches\n%q, want\n%q", alone, want)
	}
	for session, sees := range map[string]bool{"s": true, branch: true, other.session: false} {
		c, err := e.mcpClient(sessionToken, "default", events.SessionName(session))
		if (err == nil) != sees {
			t.Errorf("%s with a token of s: %v", session, err)
		} else if sees {
			if text, bad := e.callTool(c, "context_stats", map[string]any{}); bad {
				t.Errorf("%s: %s", session, text)
			}
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
