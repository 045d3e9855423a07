package partition

import (
	"errors"
	"fmt"
	"testing"

	"compactd/internal/broker/commit"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
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
