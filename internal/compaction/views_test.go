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
