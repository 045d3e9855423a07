package scenarios_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// Whatever becomes of the workers, and of answers: the session has each message of the
// history once. A worker stops in the midst of requests and another one goes on; each
// history is sent again, several times at once, as after an answer that was lost.
func TestSyncTakeOver(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	stop := env.Run("a", observe.Listener{})
	var all []*workertest.SyncAgent
	for i := range 4 {
		a := &workertest.SyncAgent{T: t, Env: env, Session: fmt.Sprintf("s%d", i)}
		a.Add("user", "Why does it fail? "+strings.Repeat("It must not. ", 9))
		all = append(all, a)
	}
	for round := range 12 {
		var calls sync.WaitGroup
		for i, a := range all {
			a.Call(round, 50+7*i)
			for range 3 {
				again := *a
				calls.Go(func() { again.Sync(0, "") })
			}
		}
		if round%3 == 1 {
			stop()
			stop = env.Run(fmt.Sprintf("w%d", round), observe.Listener{})
		}
		calls.Wait()
		for _, a := range all {
			if got := env.Lineage(a.Session); events.OpenAI.DigestOf(got) != events.OpenAI.DigestOf(a.History) || env.LoggedTurns(a.Session) != round+1 {
				t.Fatalf("round %d: the log has %d turns and %d messages of %d", round, env.LoggedTurns(a.Session), len(got), len(a.History))
			}
		}
	}
	for _, a := range all {
		a.Sync(0, "")
		a.WantContext()
		if a.Last.Generation == 0 || a.Last.Known != int64(len(a.History)) {
			t.Errorf("%+v", a.Last)
		}
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
			alone.Work(1)
			a := &workertest.SyncAgent{T: t, Env: env, Session: "s"}
			a.Work(2)
			all := []string{"s"}
			note := func() {
				t.Helper()
				if a.WantHeld(); slices.Contains(all, a.Holder()) {
					t.Fatalf("it is in %s", a.Holder())
				}
				all = append(all, a.Holder())
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
				workertest.Until(t, session+" is over", func() bool {
					return env.Stats(session).Turns == 0 && (kind == events.KindEnd || env.LoggedTurns(session) == 0)
				})
			}
			if env.Stats(alone.Session).Turns == 0 {
				t.Error("a session with a like name is gone")
			}
			a.History = nil
			a.Work(1) // it begins again, and has no branches
			if a.Last.Session != "" || a.Last.Turns != 1 {
				t.Errorf("%+v", a.Last)
			}
			stop()
		})
	}
}

// awaitBranches waits until the log names so many branches of a session.
func awaitBranches(env *workertest.Env, session string, n int) {
	env.T.Helper()
	workertest.Until(env.T, "the branches of "+session+" are named", func() bool { return len(env.Logged(session, events.KindBranch)) >= n })
}

// A client that follows a session, or has its token, sees its branches, and nothing of another session.
func TestSyncFamiliesSeen(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	env.Config = workertest.NewConfig(t, workertest.WithoutSummaries())
	r := env.StartReady("a", observe.Listener{})
	e := env.StartEdge(r.Worker, nil)
	e.WriteTokens(workertest.TokenLine(workertest.DefaultToken, "default agent") + workertest.TokenLine(workertest.SessionToken, "default/s session"))
	if err := e.Listener.Reload(); err != nil {
		t.Fatal(err)
	}
	other := &workertest.SyncAgent{T: t, Env: env, Session: "b64-cy9vdGhlcg"} // s/other, which is no branch
	other.Work(1)
	all, stop := e.Follow("s?branches=true", "")
	defer stop()
	begin := (<-all).ID
	own, stopOwn := e.Follow("s", "")
	defer stopOwn()
	<-own
	a := &workertest.SyncAgent{T: t, Env: env, Session: "s"}
	a.Work(2)
	kept := a.History
	a.History = nil
	a.Add("user", "a sub-agent "+strings.Repeat("with a long text ", 9))
	other.Work(20)
	a.Work(20)
	branch := a.Last.Session
	if branch == "" || a.Last.Generation == 0 || other.Last.Generation == 0 {
		t.Fatalf("%+v", a.Last)
	}
	a.History = slices.Clone(kept)
	a.Work(20)
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
}
