package worker_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// In a fleet a reader gets the outcomes of sessions that another worker serves. When that worker
// leaves and its partitions are taken over, a reader of the edge that stays misses nothing, and
// one of the edge that left comes back elsewhere with the id of its last event.
func TestAgentsEventsInFleet(t *testing.T) {
	t.Parallel()
	env, owners := newEnv(t, t.TempDir()), newOwnership(t)
	first := env.start("a", owners.listener("a"))
	<-first.worker.Ready()
	second := env.start("b", owners.listener("b"))
	<-second.worker.Ready()
	owners.await(map[string]int{"a": 2, "b": 2})
	leaves, stays := env.edge(first.worker, nil), env.edge(second.worker, nil)
	const sessions = 8 // of both workers: a session is of one of 4 partitions
	name := func(i int) string { return fmt.Sprintf("s%d", i) }
	all, some := make([]<-chan sse, sessions), make([]<-chan sse, sessions)
	begin := make([]string, sessions)
	for i := range sessions {
		var stop func()
		all[i], stop = stays.follow(name(i), "")
		defer stop()
		begin[i] = (<-all[i]).id
		some[i], stop = leaves.follow(name(i), begin[i])
		defer stop()
		<-some[i] // where it begins
	}
	post := func(e *edge, from, to int) {
		t.Helper()
		for n := from; n <= to; n++ {
			for i := range sessions {
				if status, got := e.post(name(i), "turns", string(turn(n))); status != http.StatusOK && status != http.StatusAccepted {
					t.Fatalf("%s, turn %d: %d %+v", name(i), n, status, got)
				}
			}
		}
	}
	post(leaves, 1, 12)
	env.awaitDecided()
	got, last := make([][]sse, sessions), slices.Clone(begin)
	for i := range sessions {
		for range env.sseOf(name(i)) {
			e := named(t, some[i])
			got[i], last[i] = append(got[i], e), e.id
		}
	}
	leaves.stop()
	for i := range sessions {
		for range some[i] {
		}
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	owners.await(map[string]int{"a": 0, "b": 4})
	post(stays, 13, 24)
	env.awaitDecided()
	for i := range sessions {
		want := env.sseOf(name(i))
		if len(want) <= len(got[i]) {
			t.Fatalf("%s has %d outcomes, %d of them before the take-over", name(i), len(want), len(got[i]))
		}
		rest, stop := stays.follow(name(i), last[i])
		for range want[len(got[i]):] {
			got[i] = append(got[i], named(t, rest))
		}
		stop()
		if !slices.Equal(got[i], want) {
			t.Errorf("%s: the reader that came back got other events than the stream has", name(i))
		}
		for n, w := range want {
			if e := named(t, all[i]); e != w {
				t.Fatalf("%s: event %d of the reader that stayed is %.100v, want %.100v", name(i), n, e, w)
			}
		}
	}
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
}
