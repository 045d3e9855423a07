package compaction

import (
	"slices"

	"compactd/internal/events"
)

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

// Means is what a plan may use beside the cheap stages.
type Means struct {
	Target Tokens // of the history
	// Summary is ready to take the place of its range; nil for none. Force uses it
	// whatever the usage.
	Summary *prepared
	Force   bool
	// Truncate allows the last stage. It cuts contents too while the history is
	// over Enough: the target, if it is Exact, else just below the trigger.
	Truncate bool
	Exact    bool
	Enough   Tokens
	// Hidden lists what may be restored where messages were hidden, newest first;
	// nil for nothing.
	Hidden func() []Entry
}

// MakePlan runs the stages in their order, each only while the history is over
// target tokens, and repairs what is left. What a stage did counts only if it made
// the history smaller. It uses no summary.
func MakePlan(entries []Entry, f events.Format, r Rate, p *Policy, window, target Tokens) Plan {
	return makePlan(entries, f, r, p, window, Means{Target: target, Truncate: true, Enough: target})
}

func makePlan(entries []Entry, f events.Format, r Rate, p *Policy, window Tokens, m Means) Plan {
	d := newDraft(entries, f, r)
	plan := Plan{Before: d.repaired(), Messages: d.messages()}
	plan.After = plan.Before
	stage := func(name events.Stage, enabled, force bool, run func()) {
		if !enabled || plan.After <= m.Target && !force {
			return
		}
		report := events.StageReport{Name: name, TokensBefore: int64(plan.After)}
		was := d.savepoint()
		run()
		if after := d.repaired(); after < plan.After || force {
			plan.After = after
		} else { // a stage that does not help has not been
			d.rollback(was)
		}
		report.TokensAfter, report.Edits = int64(plan.After), int64(len(d.edits)-len(was.edits))
		plan.Stages = append(plan.Stages, report)
		if report.Edits > 0 {
			plan.Used = append(plan.Used, name)
		}
	}
	most := min(m.Target, plan.Before-1) // what is restored must not make a history larger
	stage(events.StagePrune, p.Prune.Enabled, false, func() {
		if d.Limit(&p.ToolOutput) && d.repaired() <= m.Target {
			return
		}
		if d.ClearOld(&p.Prune.Micro) && d.repaired() <= m.Target {
			return
		}
		d.Prune(p.Prune.scaled(p.Prune.ProtectTokens, window), p.Prune.scaled(p.Prune.MinimumTokens, window), p.Prune.ProtectedTools)
	})
	stage(events.StageDeduplicate, p.Deduplicate.Enabled, false, func() { d.Deduplicate(p.Deduplicate.Minimum) })
	stage(events.StageSummarize, m.Summary != nil, m.Force, func() {
		d.hiding(func() { d.Condense(m.Summary.Seq, m.Summary.To, m.Summary.Units) })
		d.restore(&m, &p.Restore, most)
	})
	stage(events.StageTruncate, p.Truncate.Enabled && m.Truncate, false, func() {
		d.hiding(func() { d.Truncate(m.Target, p.Truncate.Fraction) })
		d.finishTruncate(&m)
		d.restore(&m, &p.Restore, most)
	})
	d.Repair()
	plan.Edits, plan.entries = d.edits, d.entries
	return plan
}

// uses reports whether a stage made edits.
func (p *Plan) uses(s events.Stage) bool { return slices.Contains(p.Used, s) }
