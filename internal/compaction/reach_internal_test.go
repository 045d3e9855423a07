package compaction

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// A5, B7: after a truncation the next call takes at most the target, wherever any cut of whole
// messages does that, whatever the usages taught; and no content is cut then.
func TestTruncationReachesTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := talk(t)
		l.usage = calibrated(t, l.prompt().Total())
		l.cache.window = measure.PPM(rapid.Int64Range(measure.Million/2, 2*measure.Million).Draw(t, "window")).Share(l.input(l.cache.visible, true))
		l.cache.reserve = 0
		total := l.thresholds().Target
		p := *l.cache.policy
		p.Truncate.Fraction = measure.PPM(rapid.Int64Range(1, measure.Million).Draw(t, "fraction"))
		l.cache.policy = &p
		room := l.available(total, true)
		least := stage.MakePlan(l.history(), &p, l.cache.window, stage.Means{Target: room, Whole: room, Truncate: true, Enough: events.MaxTokens, WholeEnough: events.MaxTokens})
		if !least.Uses(events.StageTruncate) || least.After > room {
			return // no cut reaches it
		}
		plan := l.plan(total, stage.Means{Truncate: true})
		if after := l.input(plan.After, plan.whole()); !plan.Uses(events.StageTruncate) || after > total {
			t.Fatalf("after %v the next call takes %d of %d; with another cut it takes %d", plan.Edits, after, total, l.input(least.After, true))
		}
		if cuts := func(e events.Edit) bool { return e.Op == events.OpTrim }; slices.ContainsFunc(plan.Edits, cuts) {
			t.Fatalf("contents are cut, and the next call takes %d of %d without that: %v", l.input(least.After, true), total, plan.Edits)
		}
	})
}

// talk is a ledger of words of a user and a model in turn, with a policy that only truncates.
func talk(t *rapid.T) *Ledger {
	p := policy.Default()
	p.Prune.Enabled, p.Deduplicate.Enabled, p.Summarize.Enabled = false, false, false
	config, err := NewConfig(p, measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	l := NewLedger(events.Address{})
	l.format = events.OpenAI
	l.system.Units = rapid.Int64Range(0, 40_000).Draw(t, "system")
	for i, size := range rapid.SliceOfN(rapid.Uint32Range(1, 60), 5, 12).Draw(t, "messages") {
		role, tokens := measure.RoleUser, 500*size
		if i%2 == 1 {
			role = measure.RoleAssistant
		}
		l.entries.add(measure.Entry{Seq: measure.Seq(i + 1), Turn: uint32(i + 1), Parts: 1, Role: role, Flags: measure.FlagFirst, Text: 4 * tokens, Base: tokens})
		l.turns = append(l.turns, turnRecord{seq: measure.Seq(i + 1)})
	}
	l.use(config)
	return l
}

// calibrated is any state that usages leave of an estimate.
func calibrated(t *rapid.T, at measure.Tokens) calibration {
	number := func(name string, least, most measure.Tokens) measure.Tokens {
		return least + (most-least)*measure.Tokens(rapid.IntRange(0, 16).Draw(t, name))/16
	}
	c := calibration{
		Ratio:      measure.PPM(number("ratio", measure.Tokens(leastRatio), measure.Tokens(mostRatio))),
		Correction: number("correction", -at/2, 4*at),
		Covered:    number("covered", 0, at),
		FixedAt:    number("fixed at", 0, at),
		Even:       rapid.Bool().Draw(t, "even"),
		Least:      measure.PPM(number("least", 0, measure.Million)),
	}
	c.Fixed = number("fixed", 0, max(c.Correction, 0))
	return c
}
