package compaction_test

import (
	"math"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// makePlan plans for a target, with every stage but a summary.
func makePlan(entries []compaction.Entry, f events.Format, r measure.Rate, p *compaction.Policy,
	window, target compaction.Tokens,
) stage.Plan {
	return stage.MakePlan(historyOf(entries, f, r), p, window, stage.Means{Target: target, Truncate: true, Whole: target, Enough: target, WholeEnough: target})
}

// historyOf is a history of entries, for a plan.
func historyOf(entries []compaction.Entry, f events.Format, r measure.Rate) stage.History {
	return stage.History{View: func(out []compaction.Entry) []compaction.Entry { return append(out, entries...) }, Format: f, Rate: r}
}

// planView is what a plan makes of its entries.
func planView(p stage.Plan, f events.Format) *compaction.View {
	return &compaction.View{Format: f, Entries: p.Entries, Uncited: stage.Uncite(p.Entries, math.MaxInt64)}
}

// draftView is what a draft made of its entries.
func draftView(d *stage.Draft, f events.Format) *compaction.View {
	return &compaction.View{Format: f, Entries: d.Entries(), Uncited: stage.Uncite(d.Entries(), math.MaxInt64)}
}

// withRole is the view as a profile has it rendered.
func withRole(v *compaction.View, profile string) *compaction.View {
	v.PlaceholderRole = measure.CustomOf(profile).PlaceholderRole
	return v
}

// condensable is the range that a summary of at most ceiling tokens would take the
// place of: the entry behind it, and whether it is worth it.
func condensable(d *stage.Draft, recent, ceiling compaction.Tokens) (end int, ok bool) {
	end, saved, _ := d.Condensable(recent, math.MaxInt64)
	return end, end > 0 && saved > ceiling
}
