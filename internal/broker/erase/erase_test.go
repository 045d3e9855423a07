package erase

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Where a power loss took the session.forget out of the log, but not the answer out of OUTCOMES, what the session
// publishes afterwards comes under the sequences that were lost. It stays, before another event has the sequence of the
// session.forget and then.
func TestEraseOfLostForget(t *testing.T) {
	t.Parallel()
	for name, forgotten := range map[string]uint64{"behind the end": 7, "another event": 3} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			a := events.Address{Tenant: "t", Session: "s"}
			w.publish(events.KindTurn, a, "before")
			w.outcome(events.PartitionOf(a, 4), events.KindForgotten, a, 0)
			after := []uint64{w.publish(events.KindTurn, a, "after"), w.publish(events.KindTurn, a, "and then")}
			_, log, err := Erase(t.Context(), w.JS, Erasure{Forgotten: events.Forgotten{Seq: forgotten}, Address: a})
			if err != nil || log != 1 {
				t.Errorf("erased %d events: %v", log, err)
			}
			if diff := cmp.Diff(after, w.held(topology.LogStream, "log.>")); diff != "" {
				t.Errorf("left in the log: %s", diff)
			}
		})
	}
}
