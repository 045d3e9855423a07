package compaction_test

import (
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction"
)

// D4, B2: 0.7 of the limit that the provider states, else of the available input,
// rounded down, and less with each repetition.
func TestEmergencyTarget(t *testing.T) {
	for _, test := range []struct {
		name string
		in   compaction.Emergency
		want compaction.Tokens
	}{
		{"stated", compaction.Emergency{Stated: 200_000, Available: 136_000, Estimated: 208_310}, 140_000},
		{"stated above our table", compaction.Emergency{Stated: 1_048_576, Available: 83_200, Estimated: 1_200_293}, 734_003},
		{"not stated", compaction.Emergency{Available: 136_001}, 95_200},
		{"rounded down", compaction.Emergency{Available: 9}, 6},
		{"again", compaction.Emergency{Stated: 200_000, Estimated: 140_000, Repetition: 1}, 98_000},
		{"again, and the first one missed its target", compaction.Emergency{Stated: 200_000, Estimated: 190_000, Repetition: 1}, 100_000},
		{"a third time", compaction.Emergency{Stated: 200_000, Estimated: 98_000, Repetition: 2}, 68_600},
		{"without an end", compaction.Emergency{Stated: 200_000, Repetition: 1000}, 12_500},
		{"we counted too little: a limit above our count is no target", compaction.Emergency{Stated: 200_000, Available: 136_000, Estimated: 90_000}, 63_000},
		{"no room at all", compaction.Emergency{Available: -5}, 1},
		{"nothing known", compaction.Emergency{}, 1},
		{"a broken count", compaction.Emergency{Stated: 100, Repetition: -3}, 70},
	} {
		if got := test.in.Target(); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// D4: each repetition is more aggressive for real. However well the attempts
// before went, the next one aims at 0.7 of what is there, or less, until it is
// down to a few tokens.
func TestEmergencyEscalates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 1<<40).Draw(t, "limit")
		now := compaction.Tokens(rapid.Int64Range(1, 1<<40).Draw(t, "estimated"))
		last := compaction.Tokens(1 << 41)
		for n := range 12 {
			e := compaction.Emergency{Stated: compaction.Tokens(limit), Estimated: now, Repetition: n}
			target := e.Target()
			if target < 1 || target > 1 && (10*target > 7*now || 10*target > 7*compaction.Tokens(limit)) {
				t.Fatalf("repetition %d: %d of %d, limit %d", n, target, now, limit)
			}
			if target > 1 && target >= last {
				t.Fatalf("repetition %d: %d after %d", n, target, last)
			}
			last = target
			missed := compaction.Tokens(rapid.Int64Range(0, 30).Draw(t, "missed by %"))
			now = target + target*missed/100
		}
	})
}
