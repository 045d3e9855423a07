package compaction

import (
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/weigh"
)

// A5: room is the exact inverse of input, whatever the usages taught: a history that
// fills the room takes at most the total that was requested, one token more takes more.
// That holds where the least share of an estimate decides, too.
func TestRoomIsInverseOfInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy.Default()
		l := &Ledger{system: weigh.Size{Units: rapid.Int64Range(0, 4000).Draw(t, "system")}}
		l.entries.add(measure.Entry{Parts: 1})
		l.cache.policy, l.cache.rate = &p, measure.NewRate(measure.Profiles["seed"], "openai")
		l.cache.visible = measure.Tokens(rapid.Int64Range(0, 1_000_000).Draw(t, "visible"))
		l.usage = calibration{
			Ratio:      measure.PPM(rapid.Int64Range(int64(leastRatio), int64(mostRatio)).Draw(t, "ratio")),
			Correction: measure.Tokens(rapid.Int64Range(-500_000, 500_000).Draw(t, "correction")),
			Covered:    measure.Tokens(rapid.Int64Range(0, 1_000_000).Draw(t, "covered")),
			Fixed:      measure.Tokens(rapid.Int64Range(0, 100_000).Draw(t, "fixed")),
			Least:      measure.PPM(rapid.Int64Range(0, measure.Million).Draw(t, "least")),
		}
		total := measure.Tokens(rapid.Int64Range(0, 2_000_000).Draw(t, "total"))
		room := l.availableFor(total)
		if room < 0 {
			return // the fixed parts alone are more
		}
		if got := l.input(room, false); got > total {
			t.Fatalf("a history of %d takes %d of %d", room, got, total)
		}
		if got := l.input(room+1, false); got <= total {
			t.Fatalf("there is room for more than %d: one more takes %d of %d", room, got, total)
		}
		if got := l.input(room, true); room <= l.cache.visible && got > total {
			t.Fatalf("a history of %d, reached by messages that leave as a whole, takes %d of %d", room, got, total)
		}
	})
}

// A5: what a compaction removes takes its part of the correction with it. A provider counts
// the same multiple of our estimate for all content, and a system prompt that was not
// published beside it. Right after any part of the history was removed, the estimate is what
// the provider would count, however wrong our estimates are.
func TestCorrectionGoesWithContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy.Default()
		l := &Ledger{}
		l.cache.policy, l.cache.rate = &p, measure.NewRate(measure.Profiles["default"], "openai")
		l.cache.window = 1 << 30
		unpublished := measure.Tokens(rapid.Int64Range(0, 40_000).Draw(t, "unpublished"))
		factor := measure.PPM(rapid.Int64Range(int64(leastRatio), int64(mostRatio)).Draw(t, "factor"))
		truth := func() measure.Tokens { return unpublished + factor.Share(l.prompt().Total()) }
		l.entries.add(measure.Entry{Parts: 1})
		for _, size := range []int64{100, rapid.Int64Range(40_000, 400_000).Draw(t, "size")} {
			l.cache.visible = measure.Tokens(size)
			l.anchor(&events.Usage{Input: int64(truth())}, 0, l.prompt().Total())
		}
		after := measure.Tokens(rapid.Int64Range(0, int64(l.cache.visible)).Draw(t, "after"))
		whole := factor >= measure.Million || rapid.Bool().Draw(t, "whole") // see calibration.rate
		planned := l.input(after, whole)
		l.resize(after, whole)
		if got := l.corrected(l.prompt().Total()); got != planned {
			t.Fatalf("%d tokens are left, and the next call takes %d: the plan had %d", after, got, planned)
		}
		if got, want := planned, truth(); max(got-want, want-got) > want/50+200 {
			t.Fatalf("%d tokens are left, and the next call takes %d: the provider counts %d", after, got, want)
		}
	})
}
