package stage_test

import (
	"maps"
	"slices"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events/dialect"
)

// B11: words lose their citations where a result of their exchange is gone. One result is enough for a
// later turn, which an agent appends as it is to the history that it was given.
func TestUncite(t *testing.T) {
	cites := func(turn uint32) measure.Entry {
		return measure.Entry{Turn: turn, Kind: measure.KindWords, Role: measure.RoleAssistant, Variant: dialect.Key(dialect.HostedCites)}
	}
	result := measure.Entry{Turn: 2, Kind: measure.KindWords, Role: measure.RoleAssistant, Call: 1, Parts: 2}
	gone := result
	gone.Op = measure.OpClear
	for through, want := range []stage.Uncited{{1: true}, {1: true}, {1: true, 3: true}, {1: true, 3: true, 4: true}} {
		entries := []measure.Entry{gone, cites(2), result, cites(2), cites(3)}
		if got := stage.Uncite(entries, int64(through)); !maps.Equal(got, want) {
			t.Errorf("through turn %d: %v, want %v", through, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}
