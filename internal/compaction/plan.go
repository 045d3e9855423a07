package compaction

import "compactd/internal/events"

// Plan is a compaction decided on entries alone.
type Plan struct {
	Edits  []events.Edit
	Stages []events.StageReport
	Used   []events.Stage
	// Before and After estimate the history, without the framing of a
	// conversation; After counts a ceiling for every text that compactd makes.
	Before, After Tokens
	Messages      int // before any stage

	entries []Entry // the view
}

// MakePlan runs the stages in their order, each only while the history is over
// target tokens, and repairs what is left.
func MakePlan(entries []Entry, f events.Format, r Rate, p *Policy, window, target Tokens) Plan {
	d := newDraft(entries, f, r)
	plan := Plan{Before: repaired(entries, f, r), Messages: d.messages()}
	plan.After = plan.Before
	stage := func(name events.Stage, enabled bool, run func()) {
		if !enabled || plan.After <= target {
			return
		}
		report := events.StageReport{Name: name, TokensBefore: int64(plan.After)}
		edits := len(d.edits)
		run()
		plan.After = repaired(d.entries, f, r)
		report.TokensAfter, report.Edits = int64(plan.After), int64(len(d.edits)-edits)
		plan.Stages = append(plan.Stages, report)
		if report.Edits > 0 {
			plan.Used = append(plan.Used, name)
		}
	}
	stage(events.StagePrune, p.Prune.Enabled, func() {
		d.Prune(p.Prune.scaled(p.Prune.ProtectTokens, window), p.Prune.scaled(p.Prune.MinimumTokens, window), p.Prune.ProtectedTools)
	})
	stage(events.StageDeduplicate, p.Deduplicate.Enabled, func() { d.Deduplicate(p.Deduplicate.Minimum) })
	stage(events.StageTruncate, p.Truncate.Enabled, func() { d.Truncate(target, p.Truncate.Fraction) })
	d.Repair()
	plan.Edits, plan.entries = d.edits, d.entries
	return plan
}

// repaired estimates what a history costs once it is repaired.
func repaired(entries []Entry, f events.Format, r Rate) Tokens {
	d := newDraft(append([]Entry(nil), entries...), f, r)
	d.Repair()
	return d.Tokens()
}
