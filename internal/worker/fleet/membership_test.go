package fleet

import (
	"testing"

	"compactd/internal/broker/coord"
)

// Another process has the name of this worker only where it wrote a lease after this one: what
// the process before wrote may be shown again by a copy of the bucket that is behind.
func TestLeaseOfCopy(t *testing.T) {
	t.Parallel()
	self := coord.Member{Name: "a", Owner: "a-2"}
	for _, c := range []struct {
		name     string
		holder   coord.Holder
		revision uint64
		own      uint64
		want     bool
	}{
		{"written after", coord.Holder{Member: "a", Owner: "a-3"}, 10, 9, true},
		{"of the process before, shown late", coord.Holder{Member: "a", Owner: "a-1"}, 8, 9, false},
		{"of the process before, at the start", coord.Holder{Member: "a", Owner: "a-1"}, 8, 0, false},
		{"its own", coord.Holder{Member: "a", Owner: "a-2"}, 10, 9, false},
		{"of another worker", coord.Holder{Member: "b", Owner: "b-1"}, 10, 9, false},
		{"free", coord.Holder{}, 10, 9, false},
	} {
		if got := (written{c.holder, c.revision}).byCopy(self, c.own); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
