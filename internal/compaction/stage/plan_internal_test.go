package stage

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// A plan is a value: the plans after it, which use its memory again, do not change it, and
// the same history has the same plan.
func TestPlanIsAValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy.Default()
		p.Prune.ProtectTokens, p.Prune.MinimumTokens = 0, 0
		plan := func(entries []measure.Entry, target measure.Tokens) Plan {
			h := History{
				View:   func(out []measure.Entry) []measure.Entry { return append(out, entries...) },
				Format: events.Anthropic, Rate: measure.NewRate(measure.Profiles[p.Profile], "anthropic"),
			}
			return MakePlan(h, &p, 200_000, Means{Target: target, Truncate: true, Whole: target, Enough: target, WholeEnough: target})
		}
		target := measure.Tokens(rapid.IntRange(0, 3000).Draw(t, "target"))
		one, other := drawEntries(t, events.Anthropic), drawEntries(t, events.Anthropic)
		first := plan(slices.Clone(one), target)
		was := first
		was.Edits, was.Entries = slices.Clone(first.Edits), slices.Clone(first.Entries)
		plan(other, target/2)
		same(t, "the first plan", was, first)
		if diff := cmp.Diff(first, plan(one, target)); diff != "" {
			t.Fatalf("the same plan again: %s", diff)
		}
	})
}
