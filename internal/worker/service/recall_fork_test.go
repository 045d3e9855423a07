package service_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// A session that branched off another one recalls what stood there by then, and nothing that
// came there later: through any number of branches, from any worker, and in its tenant alone.
func TestRecallFromAncestors(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	owners := workertest.NewOwnership(t)
	var recalled atomic.Int64
	counting := func(name string) observe.Listener {
		l := owners.Listener(name)
		l.Recalled = func(observe.Recalled) { recalled.Add(1) }
		return l
	}
	env.Run("a", counting("a"))
	env.Run("b", counting("b"))
	publish := func(session string, n int, fork, text string) {
		env.Publish(events.KindTurn, session, fmt.Appendf(nil, `{"turn":%d%s,"messages":[{"role":"user","content":%q}]}`, n, fork, text))
	}
	// root 1..6 ── middle 1..2 behind 5 ── leaf 1 behind 2
	for n := 1; n <= 6; n++ {
		publish("root", n, "", fmt.Sprintf("needle of root %d", n))
	}
	publish("middle", 1, `,"v":2,"forked_from":{"session":"root","turn":5}`, "needle of middle 1")
	publish("middle", 2, "", "needle of middle 2")
	publish("leaf", 1, `,"v":2,"forked_from":{"session":"middle","turn":2}`, "needle of leaf 1")
	publish("root", 7, "", "needle of root 7")
	publish("middle", 3, "", "needle of middle 3")
	// One that states that it branched off where it is an ancestor itself.
	publish("late", 1, `,"v":2,"forked_from":{"session":"early","turn":9}`, "needle of late 1")
	publish("early", 1, `,"v":2,"forked_from":{"session":"late","turn":1}`, "needle of early 1")
	publish("alone", 1, `,"v":2,"forked_from":{"session":"root","turn":0}`, "needle of alone 1")
	publish("base", 1, "", "needle of base 1")
	publish("base", 2, "", "needle of base 2")
	publish("again", 1, `,"v":2,"forked_from":{"session":"base","turn":2}`, "needle of again")
	publish("again", 1, `,"replaces_from":1`, "needle of again 1") // stays a branch of what was there
	publish("base", 2, `,"replaces_from":2`, "needle of another base 2")
	for n := 1; n <= events.DefaultHits; n++ {
		fork := ""
		if n == 1 {
			fork = `,"v":2,"forked_from":{"session":"root","turn":5}`
		}
		publish("ten", n, fork, "needle of ten")
	}
	env.AwaitDecided()
	var ten events.SearchResponse // as many as are found by default
	if e := env.Request(events.SubjectRecall, `{"session":"ten","text":"needle"}`, &ten); e != nil || len(ten.Hits) != events.DefaultHits || ten.Ancestor != "root" || ten.Before == nil {
		t.Errorf("%d hits by default: %+v, %v", len(ten.Hits), ten, e)
	}

	of := func(ancestor string) string {
		if ancestor == "" {
			return ""
		}
		return fmt.Sprintf(`,"ancestor":%q`, ancestor)
	}
	search := func(session string, limit int) (out []string) {
		for before := ""; ; {
			var got events.SearchResponse
			if e := env.Request(events.SubjectRecall, fmt.Sprintf(`{"session":%q,"text":"needle","limit":%d%s}`, session, limit, before), &got); e != nil {
				t.Fatalf("search %s: %+v", session, e)
			}
			for _, h := range got.Hits {
				out = append(out, strings.TrimPrefix(h.Excerpt, "needle of "))
				var r events.RecallResponse
				in := fmt.Sprintf(`{"session":%q,"turn":%d,"index":%d%s}`, session, h.Turn, h.Index, of(h.Ancestor))
				if e := env.Request(events.SubjectRecall, in, &r); e != nil || len(r.Messages) != 1 || !strings.Contains(string(r.Messages[0]), h.Excerpt) || r.Ancestor != h.Ancestor {
					t.Errorf("recall %s: %+v %+v", in, e, r)
				}
			}
			if got.Before == nil {
				return out
			}
			before = fmt.Sprintf(`,"before":{"turn":%d,"index":%d}%s`, got.Before.Turn, got.Before.Index, of(got.Ancestor))
		}
	}
	root := []string{"root 5", "root 4", "root 3", "root 2", "root 1"}
	for session, want := range map[string][]string{
		"root":   slices.Concat([]string{"root 7", "root 6"}, root),
		"base":   {"another base 2", "base 1"},
		"again":  {"again 1", "base 1"}, // the other turn 2 came later
		"middle": slices.Concat([]string{"middle 3", "middle 2", "middle 1"}, root),
		"leaf":   slices.Concat([]string{"leaf 1", "middle 2", "middle 1"}, root),
		"late":   {"late 1"},
		"early":  {"early 1", "late 1"},
		"alone":  {"alone 1"},
	} {
		for limit := 1; limit <= 9; limit++ {
			if d := cmp.Diff(want, search(session, limit)); d != "" {
				t.Errorf("%s, %d at once (-want +got):\n%s", session, limit, d)
			}
		}
	}
	for in, want := range map[string]string{ // beyond the session's own turns
		`{"session":"leaf","turn":2,"index":0}`: "middle 2",
		`{"session":"leaf","turn":4}`:           "root 4",
		`{"session":"leaf","turn":1}`:           "leaf 1",
		`{"session":"middle","turn":5}`:         "root 5",
	} {
		was := recalled.Load()
		if got := env.Recall(in); len(got.Messages) != 1 || !strings.Contains(string(got.Messages[0]), want) {
			t.Errorf("%s: %+v, want %s", in, got, want)
		}
		if n := recalled.Load() - was; n != 1 {
			t.Errorf("%s counts %d times", in, n)
		}
	}
	for _, in := range []string{
		`{"session":"leaf","turn":6}`,                       // root went on without it
		`{"session":"middle","turn":1,"ancestor":"leaf"}`,   // the other way round
		`{"session":"leaf","turn":1,"ancestor":"stranger"}`, // no ancestor
		`{"session":"alone","turn":1,"ancestor":"root"}`,    // has nothing of it
		`{"session":"late","turn":2}`,
	} {
		if e := env.Request(events.SubjectRecall, in, &events.RecallResponse{}); e == nil || e.Code != events.CodeUnknownTurn {
			t.Errorf("%s: %+v, want %s", in, e, events.CodeUnknownTurn)
		}
	}
}

// A search goes through as many sessions as branched off one another, whichever of two workers serves each, with
// the memory and the places of one: it waits for nothing that it holds itself.
func TestSearchHoldsOneShare(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	var limits []*workertest.Limiter
	var workers []*workertest.Running
	for _, name := range []string{"a", "b"} {
		limits = append(limits, env.Limit(limit.Config{Memory: 32 << 20}))
		workers = append(workers, env.StartReady(name, observe.Listener{}))
	}
	const depth = 50
	for n := range depth {
		fork := ""
		if n > 0 {
			fork = fmt.Sprintf(`,"v":2,"forked_from":{"session":"s%d","turn":1}`, n-1)
		}
		env.Publish(events.KindTurn, fmt.Sprintf("s%d", n), fmt.Appendf(nil, `{"turn":1%s,"messages":[{"role":"user","content":"needle %d"}]}`, fork, n))
	}
	env.AwaitDecided()
	var got events.SearchResponse
	if e := env.Request(events.SubjectRecall, fmt.Sprintf(`{"session":"s%d","text":"needle","limit":%d}`, depth-1, events.MaxHits), &got); e != nil || len(got.Hits) != depth {
		t.Errorf("%d hits in %d sessions: %+v", len(got.Hits), depth, e)
	}
	if turn := env.Recall(fmt.Sprintf(`{"session":"s%d","turn":1,"ancestor":"s0"}`, depth-1)); len(turn.Messages) != 1 || !strings.Contains(string(turn.Messages[0]), "needle 0") {
		t.Errorf("the first session: %+v", turn)
	}
	for i, l := range limits {
		l.Await(t, func() bool {
			return l.Held(limit.Memory)+l.Held(limit.Processor)+l.Held(limit.Reads)+l.Held(limit.Forwards) == 0
		})
		workers[i].Stop()
	}
}
