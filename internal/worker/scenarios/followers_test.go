package scenarios_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"compactd/internal/testkit/workertest"
)

// In a fleet a reader gets the outcomes of sessions that another worker serves. When that worker
// leaves and its partitions are taken over, a reader of the edge that stays misses nothing, and
// one of the edge that left comes back elsewhere with the id of its last event.
func TestAgentsEventsInFleet(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	first := env.StartReady("a", owners.Listener("a"))
	second := env.StartReady("b", owners.Listener("b"))
	owners.Await(map[string]int{"a": 2, "b": 2})
	leaves, stays := env.StartEdge(first.Worker, nil), env.StartEdge(second.Worker, nil)
	const sessions = 8 // of both workers: a session is of one of 4 partitions
	name := func(i int) string { return fmt.Sprintf("s%d", i) }
	all, some := make([]<-chan workertest.Event, sessions), make([]<-chan workertest.Event, sessions)
	begin := make([]string, sessions)
	for i := range sessions {
		var stop func()
		all[i], stop = stays.Follow(name(i), "")
		defer stop()
		begin[i] = (<-all[i]).ID
		some[i], stop = leaves.Follow(name(i), begin[i])
		defer stop()
		<-some[i] // where it begins
	}
	post := func(e *workertest.Edge, from, to int) {
		t.Helper()
		for n := from; n <= to; n++ {
			for i := range sessions {
				if status, got := e.Post(name(i), "turns", string(workertest.Turn(n))); status != http.StatusOK && status != http.StatusAccepted {
					t.Fatalf("%s, turn %d: %d %+v", name(i), n, status, got)
				}
			}
		}
	}
	post(leaves, 1, 12)
	env.AwaitDecided()
	got, last := make([][]workertest.Event, sessions), slices.Clone(begin)
	for i := range sessions {
		for range env.EventsOf(name(i)) {
			e := workertest.NextEvent(t, some[i])
			got[i], last[i] = append(got[i], e), e.ID
		}
	}
	leaves.Stop()
	for i := range sessions {
		for range some[i] {
		}
	}
	first.Stop()
	owners.Await(map[string]int{"a": 0, "b": 4})
	post(stays, 13, 24)
	env.AwaitDecided()
	for i := range sessions {
		want := env.EventsOf(name(i))
		if len(want) <= len(got[i]) {
			t.Fatalf("%s has %d outcomes, %d of them before the take-over", name(i), len(want), len(got[i]))
		}
		rest, stop := stays.Follow(name(i), last[i])
		for range want[len(got[i]):] {
			got[i] = append(got[i], workertest.NextEvent(t, rest))
		}
		stop()
		if !slices.Equal(got[i], want) {
			t.Errorf("%s: the reader that came back got other events than the stream has", name(i))
		}
		for n, w := range want {
			if e := workertest.NextEvent(t, all[i]); e != w {
				t.Fatalf("%s: event %d of the reader that stayed is %.100v, want %.100v", name(i), n, e, w)
			}
		}
	}
}
