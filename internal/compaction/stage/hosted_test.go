package stage_test

import (
	"maps"
	"slices"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events/dialect"
)

// B11: words lose their citations where results of their exchange are gone, if they were there when
// those went: an agent appends later turns as they are to the history that it was given.
func TestUncite(t *testing.T) {
	cites := func(turn uint32) measure.Entry {
		return measure.Entry{Turn: turn, Kind: measure.KindWords, Role: measure.RoleAssistant, Variant: measure.Key(dialect.HostedCites)}
	}
	entries := []measure.Entry{{Turn: 1, Kind: measure.KindTruncation}, cites(2), cites(3)}
	for through, want := range []stage.Uncited{nil, nil, {1: true}, {1: true, 2: true}} {
		if got := stage.Uncite(entries, int64(through)); !maps.Equal(got, want) {
			t.Errorf("through turn %d: %v, want %v", through, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}
