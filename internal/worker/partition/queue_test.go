package partition

import (
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// A view is shown only when the outcomes it follows from are committed; those of other
// sessions, and of later events, do not matter.
func TestHasCommitted(t *testing.T) {
	t.Parallel()
	a, b := events.Address{Tenant: "t", Session: "a"}, events.Address{Tenant: "t", Session: "b"}
	q := &queue{
		end:    position{seq: 9},
		groups: []group{{outcomes: []emitted{{address: b}}, end: position{seq: 4}}, {outcomes: []emitted{{address: b}, {address: a}}, end: position{seq: 7}}},
	}
	for _, test := range []struct {
		address events.Address
		seq     measure.Seq
		want    bool
	}{{a, 3, true}, {b, 3, true}, {a, 4, true}, {b, 4, false}, {a, 6, true}, {a, 7, false}, {a, 9, false}, {b, 9, false}, {a, 10, false}} {
		if got := q.HasCommitted(test.address, test.seq); got != test.want {
			t.Errorf("%s at %d: got %v", test.address, test.seq, got)
		}
	}
	q.groups = nil
	if !q.HasCommitted(a, 9) || q.HasCommitted(a, 10) {
		t.Error("an empty queue has committed what is decided, and no more")
	}
}
