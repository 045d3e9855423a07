package compaction_test

import (
	"math"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// makePlan plans for a target, with every stage but a summary.
func makePlan(entries []measure.Entry, f events.Format, r measure.Rate, p *policy.Policy,
	window, target measure.Tokens,
) stage.Plan {
	return stage.MakePlan(historyOf(entries, f, r), p, window, stage.Means{Target: target, Truncate: true, Whole: target, Enough: target, WholeEnough: target})
}

// historyOf is a history of entries, for a plan.
func historyOf(entries []measure.Entry, f events.Format, r measure.Rate) stage.History {
	return stage.History{View: func(out []measure.Entry) []measure.Entry { return append(out, entries...) }, Format: f, Rate: r}
}

// planView is what a plan makes of its entries.
func planView(p stage.Plan, f events.Format) *render.View {
	return &render.View{Format: f, Entries: p.Entries, Uncited: stage.Uncite(p.Entries, math.MaxInt64)}
}

// draftView is what a draft made of its entries.
func draftView(d *stage.Draft, f events.Format) *render.View {
	return &render.View{Format: f, Entries: d.Entries(), Uncited: stage.Uncite(d.Entries(), math.MaxInt64)}
}

// withRole is the view as a profile has it rendered.
func withRole(v *render.View, profile string) *render.View {
	v.PlaceholderRole = measure.CustomOf(profile).PlaceholderRole
	return v
}

// condensable is the range that a summary of at most ceiling tokens would take the
// place of: the entry behind it, and whether it is worth it.
func condensable(d *stage.Draft, recent, ceiling measure.Tokens) (end int, ok bool) {
	end, saved, _ := d.Condensable(recent, math.MaxInt64)
	return end, end > 0 && saved > ceiling
}
