package compaction

import (
	"testing"

	"compactd/internal/compaction/measure"

	"github.com/google/go-cmp/cmp"
)

// The forecast is the most that as many turns in a row added as came within the time: not
// only where they came so fast.
func TestGrowth(t *testing.T) {
	var g growth
	if got := g.within(60_000); got != 0 {
		t.Errorf("before any turn: %d tokens", got)
	}
	at := int64(1_000_000)
	for _, s := range []growthStep{{0, 10}, {1_000, 10}, {1_000, 10}, {600_000, 5_000}, {600_000, 100}} {
		at += int64(s.after)
		g.add(at, measure.Tokens(s.tokens))
	}
	for _, c := range []struct {
		ms   int64
		want measure.Tokens
	}{{500, 0}, {1_000, 5_000}, {2_000, 5_100}, {60_000, 5_100}, {600_000, 5_100}, {3_600_000, 5_120}} {
		if got := g.within(c.ms); got != c.want {
			t.Errorf("within %d ms: %d tokens, want %d", c.ms, got, c.want)
		}
	}
}

// Only the last turns count, and a stored record forecasts as the one it was made of.
func TestGrowthStored(t *testing.T) {
	var g growth
	g.add(0, 1<<20)
	for i := range int64(growthSteps) {
		g.add(i*1000, measure.Tokens(i))
	}
	if got := g.within(1000); got != growthSteps-1 {
		t.Errorf("the most is %d tokens: an old turn counts, or a new one does not", got)
	}
	stored := growthOf(g.rows(), g.last)
	stored.add(99_000, 7)
	g.add(99_000, 7)
	if diff := cmp.Diff(g.rows(), stored.rows()); diff != "" {
		t.Error(diff)
	}
	for _, ms := range []int64{0, 1_000, 10_000, 100_000} {
		if a, b := g.within(ms), stored.within(ms); a != b {
			t.Errorf("within %d ms: %d and %d tokens", ms, a, b)
		}
	}
}
