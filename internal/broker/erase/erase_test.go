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
			w.outcomeOf(forgotten, events.PartitionOf(a, 4), events.KindForgotten, a, 0)
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

// After a power loss the session may be erased again, by a session.forget that is earlier in the log than the lost one was.
// Only that erasure overwrites events then: the lost one would take those behind the session.forget.
func TestEraseAgain(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := events.Address{Tenant: "t", Session: "s"}
	p := events.PartitionOf(a, 4)
	w.publish(events.KindTurn, a, "before")
	lost := w.outcomeOf(9, p, events.KindForgotten, a, 0)
	forget := w.publish(events.KindForget, a, `{"v":1,"id":"f"}`)
	after := w.publish(events.KindTurn, a, "after")
	forgotten := w.outcomeOf(forget, p, events.KindForgotten, a, lost)
	if _, log, err := Erase(t.Context(), w.JS, Erasure{Forgotten: events.Forgotten{Seq: 9}, Address: a}); err != nil || log != 0 {
		t.Errorf("erased %d events: %v", log, err)
	}
	w.outcomeOf(9, p, events.KindErased, a, forgotten)
	pending, err := Pending(t.Context(), w.JS, p)
	if err != nil || len(pending) != 1 || pending[0].Seq != forget {
		t.Fatalf("the erasures to do are %+v, %v", pending, err)
	}
	if _, log, err := Erase(t.Context(), w.JS, pending[0]); err != nil || log != 1 {
		t.Errorf("erased %d events: %v", log, err)
	}
	if diff := cmp.Diff([]uint64{forget, after}, w.held(topology.LogStream, "log.>")); diff != "" {
		t.Errorf("left in the log: %s", diff)
	}
	w.outcomeOf(forget, p, events.KindErased, a, forgotten+1)
	if pending, err := Pending(t.Context(), w.JS, p); err != nil || len(pending) > 0 {
		t.Errorf("the erasures to do are %+v, %v", pending, err)
	}
}
