package outcomelog

import (
	"testing"

	"compactd/internal/broker/commit"
	"compactd/internal/compaction/measure"
)

// The first marker of an owner is at the position that the owner before it had reached. Events
// between that and the last marker that is left were decided under the old config, also when
// markers were erased with a session.
func TestConfigEpochsOfErasedMarkers(t *testing.T) {
	r := &Index{}
	for _, m := range []commit.Marker{
		{Cursor: 0, Epoch: 1, Config: "a"},
		{Cursor: 10, Epoch: 1, Config: "a"},
		// {Cursor: 20, Epoch: 1, Config: "a"} was erased
		{Cursor: 20, Epoch: 2, Config: "b"},
		{Cursor: 30, Epoch: 2, Config: "b"},
	} {
		r.ApplyMarker(m)
	}
	for seq, want := range map[measure.Seq]string{1: "a", 10: "a", 11: "a", 20: "a", 21: "b", 30: "b", 31: ""} {
		if got := r.ConfigAt(seq); got != want {
			t.Errorf("event %d was decided under %q, not %q", seq, got, want)
		}
	}
}

// A take-over that states that it is one has the config before, or the same one. The owner before may have taken over
// where no event followed the marker of its config.
func TestConfigEpochsOfTakeOvers(t *testing.T) {
	r := &Index{}
	for _, m := range []commit.Marker{
		{Cursor: 0, Epoch: 1, Config: "a", Taken: true},
		{Cursor: 0, Epoch: 2, Config: "b", Before: "a", Taken: true},
		// {Cursor: 10, Epoch: 2, Config: "b"} was erased
		{Cursor: 10, Epoch: 3, Config: "b", Taken: true},
		// {Cursor: 20, Epoch: 3, Config: "b"} was erased
		{Cursor: 20, Epoch: 4, Config: "c", Before: "b", Taken: true},
		{Cursor: 30, Epoch: 4, Config: "c"},
	} {
		r.ApplyMarker(m)
	}
	for seq, want := range map[measure.Seq]string{1: "b", 10: "b", 20: "b", 21: "c", 30: "c"} {
		if got := r.ConfigAt(seq); got != want {
			t.Errorf("event %d was decided under %q, not %q", seq, got, want)
		}
	}
}

// When a log is truncated, config epochs after its end are dropped, also when it ends at the end of
// one of them.
func TestConfigEpochsOfLostEvents(t *testing.T) {
	for end, want := range map[uint64]map[measure.Seq]string{
		10: {10: "a", 11: "c", 40: "c"},
		15: {10: "a", 15: "b", 16: "c", 40: "c"},
		20: {10: "a", 20: "b", 21: "c", 40: "c"},
	} {
		r := &Index{}
		for _, m := range []commit.Marker{
			{Cursor: 10, Epoch: 1, Config: "a"},
			{Cursor: 20, Epoch: 1, Config: "b"},
			{Cursor: 30, Epoch: 1, Config: "a"},
			{Cursor: end, Epoch: 2, Config: "c"},
			{Cursor: 40, Epoch: 2, Config: "c"},
		} {
			r.ApplyMarker(m)
		}
		for seq, hash := range want {
			if got := r.ConfigAt(seq); got != hash {
				t.Errorf("the log ended at %d: event %d was decided under %q, not %q", end, seq, got, hash)
			}
		}
	}
}
