package partition

import (
	"fmt"
	"testing"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/worker/decide"
)

// publish stores an event and returns its sequence.
func (env *splitEnv) publish(k events.Kind, a events.Address, body string) measure.Seq {
	env.T.Helper()
	ack, err := env.JS.Publish(env.T.Context(), events.Published(k, a), []byte(body))
	if err != nil {
		env.T.Fatal(err)
	}
	return measure.Seq(ack.Sequence)
}

// erase stores a session.forget.
func (env *splitEnv) erase(a events.Address) decide.Event {
	env.T.Helper()
	const body = `{"v":1,"id":"f"}`
	seq := env.publish(events.KindForget, a, body)
	return decide.Event{Location: events.Location{Kind: events.KindForget, Address: a}, Seq: seq, Data: []byte(body)}
}

// An erasure reaches a branch whose first turn is stored before it and decided after it, in another partition.
func TestEraseUndecidedBranch(t *testing.T) {
	t.Parallel()
	env := &splitEnv{Env: brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 2})}
	parent, branch := events.Address{Tenant: "t", Session: of(0)}, events.Address{Tenant: "t", Session: of(1)}
	env.turn(parent.Session, 1)
	env.Turn(branch.Session, fmt.Sprintf(`{"v":1,"turn":1,"forked_from":{"session":%q,"turn":1},"messages":[{"role":"user","content":"go on"}]}`, parent.Session))
	cause := env.erase(parent)
	first, _, _ := env.serve("a", 0, "")
	if n := env.turns(first, 0, parent.Session, uint64(cause.Seq)); n != 0 {
		t.Fatalf("the erased session has %d turns", n)
	}
	second, _, _ := env.serve("b", 1, "")
	env.eventually("erase the branch", func() (bool, error) {
		found, err := family{scope{1, second}}.endings(t.Context(), branch, 0)
		return len(found) == 1 && found[0].kind == events.KindForget, err
	})
}

// An owner that decides an erasure again, after the log has dropped the message id, does not erase a branch again: its
// agent may have begun it again.
func TestPassOnOnce(t *testing.T) {
	t.Parallel()
	env := &splitEnv{Env: brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 2})}
	parent, branch, other := events.Address{Tenant: "t", Session: of(0)}, events.Address{Tenant: "t", Session: of(1)}, events.Address{Tenant: "t", Session: "other"}
	for _, b := range []events.Address{parent, branch, other} { // the parent is its own branch too
		env.publish(events.KindBranch, parent, fmt.Sprintf(`{"v":1,"branch":%q}`, b.Session))
	}
	env.erase(branch)
	cause := env.erase(parent)
	env.publish(events.KindForget, branch, fmt.Sprintf(`{"v":1,"id":"family-%d-stored-before"}`, cause.Seq))
	f := family{scope{0, env.set("a", "")}}
	if err := relate(t.Context(), f, cause, nil); err != nil {
		t.Fatal(err)
	}
	for a, want := range map[events.Address]int{parent: 1, branch: 2, other: 1} {
		if found, err := f.endings(t.Context(), a, 0); err != nil || len(found) != want {
			t.Errorf("%s has %+v, %v; want %d", a, found, err, want)
		}
	}
}
