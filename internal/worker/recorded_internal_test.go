package worker

import (
	"testing"

	"compactd/internal/broker"
	"compactd/internal/compaction"
)

// The first marker of an owner stands where the one before had come to: what lies
// between that and the last marker that is left was decided under the old config,
// also when the markers were erased with a session that was forgotten.
func TestReignsOfErasedMarkers(t *testing.T) {
	r := &recorded{}
	for _, m := range []broker.Marker{
		{Cursor: 0, Epoch: 1, Config: "a"},
		{Cursor: 10, Epoch: 1, Config: "a"},
		// {Cursor: 20, Epoch: 1, Config: "a"} was erased
		{Cursor: 20, Epoch: 2, Config: "b"},
		{Cursor: 30, Epoch: 2, Config: "b"},
	} {
		r.pass(m)
	}
	for seq, want := range map[compaction.Seq]string{1: "a", 10: "a", 11: "a", 20: "a", 21: "b", 30: "b", 31: ""} {
		if got := r.configAt(seq); got != want {
			t.Errorf("event %d was decided under %q, not %q", seq, got, want)
		}
	}
}
