package partition

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/erase"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/kv"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/outcomelog"
)

// A truncated log is compared with the hashes of all markers that are left, but not with those from before an
// erasure: the log lacks events of these.
func TestErasedBeforeTruncation(t *testing.T) {
	set := &Set{config: Config{Compaction: simulatedConfigs()[1]}}
	set.install(partitions.New(1))
	event := func(seq measure.Seq, k events.Kind, session, body string) decide.Event {
		return decide.Event{Location: events.Location{Kind: k, Address: events.Address{Tenant: "t", Session: session}}, Seq: seq, Data: []byte(body)}
	}
	log := []decide.Event{
		event(1, events.KindTurn, "erased", `{"turn":1,"messages":[{"role":"user","content":"secret"}]}`),
		event(2, events.KindTurn, "s", `{"turn":1,"messages":[{"role":"user","content":"go on"}]}`),
		event(3, events.KindForget, "erased", `{}`),
		event(4, events.KindEnd, "s", `{}`),
	}
	replay := func(other uint64) error {
		h := inherit(0, set.Table(), 0)
		h.whole = true
		index := &outcomelog.Index{Chains: map[measure.Seq]uint64{}}
		at := position{}
		for _, e := range log {
			at = positionAfter(at, e, storedAt(&e))
			if e.Kind == events.KindForget {
				if err := index.Add(events.KindForgotten, fmt.Appendf(nil, `{"v":1,"id":"f","caused_by":{"seq":%d},"seq":%[1]d}`, e.Seq)); err != nil {
					t.Fatal(err)
				}
			}
			index.ApplyMarker(commit.Marker{Cursor: uint64(e.Seq), Chain: at.chain, Config: set.Compaction().Hash()})
		}
		index.Chains[4] += other
		h.by[0] = index
		l := &ledgers{scope: scope{0, set}, life: &lifecycle{}}
		l.begin(nil, position{})
		for _, e := range log[1:] { // the first event is erased
			if _, err := h.apply(l, e, storedAt(&e), func(string) (*compaction.Config, error) { return set.Compaction(), nil }, func(err error) { t.Error(err) }); err != nil {
				return err
			}
		}
		return nil
	}
	if err := replay(0); err != nil {
		t.Errorf("the log of the markers: %v", err)
	}
	if err := replay(1); !errors.Is(err, errOtherChain) {
		t.Errorf("another log behind the erasure: %v", err)
	}
}

// The event at the marker of a partition may have been erased. It is another one, though, if the events before it are
// later than the marker: the log was truncated.
func TestMarkerAtErasedEvent(t *testing.T) {
	t.Parallel()
	env := &splitEnv{Env: brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 1})}
	var last uint64
	for n := range 4 {
		last = env.turn("s", n+1)
	}
	at := func(seq uint64) time.Time {
		found, err := stream.GetLog(t.Context(), env.NC, []uint64{seq})
		if err != nil {
			t.Fatal(err)
		}
		return found[0].Time
	}
	before, marker := at(last-2), at(last-1)
	log, err := env.JS.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.SecureDeleteMsg(t.Context(), last-1); err != nil {
		t.Fatal(err)
	}
	r := &recovery{scope: scope{0, env.set("a", "")}}
	if r.log, err = topology.State(t.Context(), env.JS, topology.LogStream); err != nil {
		t.Fatal(err)
	}
	for of, want := range map[time.Time]bool{marker: true, before.Add(-time.Millisecond): false} {
		has, err := r.hasEventOf(t.Context(), commit.Marker{Cursor: last - 1, LastTime: of.UnixMilli()})
		if err != nil || has != want {
			t.Errorf("the event at %d is that of a marker of %s: %t, %v", last-1, of, has, err)
		}
	}
}

// A partition whose log lost a session.forget is opened again, though the log lacks events of the hash of its marker: the
// session was erased all the same.
func TestLostForget(t *testing.T) {
	index := &outcomelog.Index{}
	lost := func() bool {
		h := inherit(0, partitions.New(1), 0)
		h.by[0] = index
		h.compare(true)
		return !h.misses(position{seq: 4, chain: 1}, position{seq: 4, chain: 2})
	}
	forget := func(seq int) {
		if err := index.Add(events.KindForgotten, fmt.Appendf(nil, `{"v":1,"id":"f","caused_by":{"seq":%d},"seq":%[1]d}`, seq)); err != nil {
			t.Fatal(err)
		}
		index.ApplyMarker(commit.Marker{Cursor: uint64(seq)})
	}
	if forget(3); lost() {
		t.Error("the hash begins again with the session.forget, and is not compared")
	}
	if index.ApplyMarker(commit.Marker{Cursor: 2}); !lost() {
		t.Error("the hash is compared, though the log lost the session.forget")
	}
	if forget(4); lost() {
		t.Error("the hash begins again with the next session.forget, and is not compared")
	}
}

// A partition whose OUTCOMES lost the end, with the answer to a session.forget that was carried out, is opened again by a
// worker without a file: the log lacks events of the hash of the newest marker.
func TestLostAnswerToForget(t *testing.T) {
	t.Parallel()
	env := &splitEnv{Env: brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 1})}
	set, _, stop := env.serve("a", 0, "")
	env.turn("kept", 1)
	last := env.turn("erased", 1)
	env.turns(set, 0, "erased", last)
	var kept commit.Stored
	env.eventually("store a marker", func() (_ bool, err error) {
		kept, err = commit.LastMarker(t.Context(), env.NC, 0)
		return kept.Cursor == last, err
	})
	if _, err := erase.Request(brokertest.Within(t, time.Minute), env.JS, events.Address{Tenant: "t", Session: "erased"}, "f"); err != nil {
		t.Fatal(err)
	}
	stop()
	outcomes, err := env.JS.Stream(t.Context(), topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	for seq := kept.Seq + 1; seq <= env.State(topology.OutcomesStream).Last; seq++ {
		if err := outcomes.DeleteMsg(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	set, _, _ = env.serve("b", 0, "")
	if n := env.turns(set, 0, "erased", env.turn("erased", 1)); n != 1 {
		t.Errorf("the session that begins again has %d turns", n)
	}
}

// A checkpoint that is ahead of OUTCOMES, whose end was lost, is not used: it would miss the outcomes that follow.
func TestCheckpointAheadOfOutcomes(t *testing.T) {
	t.Parallel()
	env := &splitEnv{Env: brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 1})}
	set := env.set("a", "")
	r := &recovery{scope: scope{0, set}, marker: position{seq: measure.Seq(env.turn("s", 1))}}
	if err := r.takeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.log.Created = env.State(topology.LogStream).Created
	r.log.Last = 1
	event, err := r.eventAt(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[uint64]bool{r.commits.LastSeq() - 1: true, r.commits.LastSeq(): false} {
		reason, err := r.mismatch(t.Context(), kv.Position{Cursor: 1, LastTime: event.Time.UnixMilli(), LogCreated: r.log.Created.UnixNano(), Outcomes: at})
		if err != nil || (reason == nil) != want {
			t.Errorf("a checkpoint at %d of OUTCOMES: %v, %v", at, reason, err)
		}
	}
}
