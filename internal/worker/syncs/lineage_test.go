package syncs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"compactd/internal/align"
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

// knownTurns is how many turns a session has.
func knownTurns(env *workertest.Env, session string) int64 {
	env.T.Helper()
	reply, err := env.Conn.Request("compactd.stats", fmt.Appendf(nil, `{"session":%q}`, session), workertest.WaitLimit)
	if err != nil {
		env.T.Fatal(err)
	}
	var out events.StatsResponse
	if err := codec.Unmarshal(reply.Data, &out); err != nil {
		env.T.Fatal(err)
	}
	return out.Turns
}

// wantHistory checks which history a session has.
func wantHistory(env *workertest.Env, session string, want []codec.Raw) {
	env.T.Helper()
	if got := env.Lineage(session); events.OpenAI.DigestOf(got) != events.OpenAI.DigestOf(want) {
		env.T.Errorf("%s has %d messages, want %d:\n%.600s\n%.600s", session, len(got), len(want), got, want)
	}
}

// holder is the session that has the history of the agent after a sync.
func holderOf(a *workertest.SyncAgent) string {
	if a.Last.Session != "" {
		return a.Last.Session
	}
	return a.Session
}

// fits checks that the last answer is inside the window and valid, and that its session has the
// history once.
func fits(a *workertest.SyncAgent) {
	a.T.Helper()
	if !a.Last.Budget.WithinBudget {
		a.T.Errorf("%+v", a.Last.Budget)
	}
	wantHistory(a.Env, holderOf(a), a.History[align.Read(events.OpenAI, a.History, 0).Lead:])
}

// A history is never locked out of its session. An edit of any message is taken; nothing that is
// another history replaces the session's.
func TestSyncLineages(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	stop := env.Run("a", observe.Listener{})
	agent := func(t *testing.T, session string, steps int) *workertest.SyncAgent {
		a := &workertest.SyncAgent{T: t, Env: env, Session: session}
		grow(a, steps)
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
				fits(a)
				if root := i == 0; (a.Last.Session != "") != root || root && events.BranchID(a.Session, a.Last.Branch) != a.Last.Session {
					t.Errorf("index %d: %+v", i, a.Last)
				}
			}
			a.Add("user", "and on")
			a.Sync(0, "")
			fits(a)
			edited, holder := a.History, holderOf(a)
			a.History = before // the edit is undone
			a.Add("user", "as it was")
			a.Sync(0, "")
			fits(a)
			if holderOf(a) == holder {
				t.Errorf("index %d: undone, it replaced the edit", i)
			}
			wantHistory(env, holder, edited)
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
			fits(a)
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
				fits(a)
				if a.Last.Session == "" {
					t.Error("it is the session")
				}
			}
			wantHistory(env, a.Session, parent)
			a.History = parent
			a.Add("user", "go on")
			a.Sync(0, "")
			fits(a)
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
				fits(a)
			}
		}
		holders := map[string]bool{}
		for i, a := range all {
			holders[holderOf(a)] = true
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
		fits(a)
		if a.Last.Session == "" {
			t.Errorf("%+v", a.Last)
		}
		wantHistory(env, a.Session, parent)
		a.History = parent
		a.Call(77, 20)
		a.Sync(0, "")
		fits(a)
		a.History = nil
		a.Add("user", "the session went on in between")
		a.Sync(0, "")
		fits(a)
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
			fits(&b)
			other = b.History
			a.History = one
			a.Call(100+i, 20)
			a.Sync(0, "")
			fits(a)
			one = a.History
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			stop = env.Run(fmt.Sprintf("memory-%d", i), observe.Listener{})
		}
		wantHistory(env, holderOf(a), one)
		wantHistory(env, holderOf(&b), other)
		if n := turnsOf(env, holderOf(a)) + turnsOf(env, holderOf(&b)); n > 12 {
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
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// An event that ends a session, or erases it, does so with its branches, also with those of branches.
func TestSyncFamilies(t *testing.T) {
	for _, kind := range []events.Kind{events.KindEnd, events.KindForget} {
		t.Run(string(kind), func(t *testing.T) {
			env := workertest.New(t, t.TempDir())
			env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
			stop := env.Run("a", observe.Listener{})
			alone := &workertest.SyncAgent{T: t, Env: env, Session: "b64-cy9vdGhlcg"} // s/other, which is no branch
			grow(alone, 1)
			a := &workertest.SyncAgent{T: t, Env: env, Session: "s"}
			grow(a, 2)
			all := []string{"s"}
			note := func() {
				t.Helper()
				if fits(a); slices.Contains(all, holderOf(a)) {
					t.Fatalf("it is in %s", holderOf(a))
				}
				all = append(all, holderOf(a))
			}
			start := a.History
			a.History = slices.Clone(start[:3])
			a.Add("user", "an edit")
			a.Sync(0, "")
			a.History = start // undone
			a.Call(9, 9)
			a.Sync(0, "")
			note()
			a.History = slices.Clone(a.History[:5])
			a.Add("user", "an edit in the branch")
			a.Sync(0, "")
			a.History = slices.Clone(start)
			a.Call(9, 9)
			a.Sync(0, "") // undone in the branch
			note()
			a.History = nil
			a.Add("user", "a sub-agent "+strings.Repeat("with a long text ", 9))
			a.Sync(0, "")
			note()
			a.History = nil
			a.Add("user", "a sub-agent with a name")
			out, bad := a.Request(0, `,"branch":"research"`)
			if bad != nil || out.Turns != 1 {
				t.Fatalf("%+v %+v", out, bad)
			}
			all = append(all, events.BranchID("s", "research"))
			awaitBranches(env, "s", 3)
			awaitBranches(env, all[1], 1)
			env.Publish(kind, "s", []byte(`{"id":"over"}`))
			for _, session := range all {
				for end := time.Now().Add(workertest.WaitLimit); knownTurns(env, session) > 0; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%s goes on", session)
					}
				}
				for end := time.Now().Add(workertest.WaitLimit); kind == events.KindForget && turnsOf(env, session) > 0; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("the log has turns of %s", session)
					}
				}
			}
			if knownTurns(env, alone.Session) == 0 {
				t.Error("a session with a like name is gone")
			}
			a.History = nil
			grow(a, 1) // it begins again, and has no branches
			if a.Last.Session != "" || a.Last.Turns != 1 {
				t.Errorf("%+v", a.Last)
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// awaitBranches waits until the log names so many branches of a session.
func awaitBranches(env *workertest.Env, session string, n int) {
	env.T.Helper()
	for end := time.Now().Add(workertest.WaitLimit); len(env.Logged(session, events.KindBranch)) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			env.T.Fatalf("the log names %d branches of %s, want %d", len(env.Logged(session, events.KindBranch)), session, n)
		}
	}
}

// A client that follows a session, or has its token, sees its branches, and nothing of another session.
func TestSyncFamiliesSeen(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	r := env.Start("a", observe.Listener{})
	<-r.Worker.Ready()
	e := env.StartEdge(r.Worker, nil)
	e.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default agent") + workertest.TokenLine(workertest.SessionToken, "default/s session"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	other := &workertest.SyncAgent{T: t, Env: env, Session: "b64-cy9vdGhlcg"} // s/other, which is no branch
	grow(other, 1)
	all, stop := e.Follow("s?branches=true", "")
	defer stop()
	begin := (<-all).ID
	own, stopOwn := e.Follow("s", "")
	defer stopOwn()
	<-own
	a := &workertest.SyncAgent{T: t, Env: env, Session: "s"}
	grow(a, 2)
	kept := a.History
	a.History = nil
	a.Add("user", "a sub-agent "+strings.Repeat("with a long text ", 9))
	grow(other, 20)
	grow(a, 20)
	branch := a.Last.Session
	if branch == "" || a.Last.Generation == 0 || other.Last.Generation == 0 {
		t.Fatalf("%+v", a.Last)
	}
	a.History = slices.Clone(kept)
	grow(a, 20)
	again, stopAgain := e.Follow("s?branches=true", begin)
	defer stopAgain()
	of := func(from <-chan workertest.Event) (list []string) {
		for {
			got := workertest.NextEvent(t, from)
			var about struct {
				Session string         `json:"session"`
				Through events.Through `json:"through"`
			}
			if err := codec.Unmarshal([]byte(got.Data), &about); err != nil {
				t.Fatal(err)
			}
			list = append(list, got.ID+" "+got.Name+" "+about.Session)
			if about.Session == "" && got.Name == string(events.KindCompacted) && about.Through.Turn >= 20 {
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
	for session, sees := range map[string]bool{"s": true, branch: true, other.Session: false} {
		c, err := e.MCP(workertest.SessionToken, "default", events.SessionName(session))
		if (err == nil) != sees {
			t.Errorf("%s with a token of s: %v", session, err)
		} else if sees {
			if text, bad := e.CallTool(c, "context_stats", map[string]any{}); bad {
				t.Errorf("%s: %s", session, text)
			}
		}
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
}
