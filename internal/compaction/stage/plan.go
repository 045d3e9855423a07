package stage

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// Plan is a compaction decided on entries alone.
type Plan struct {
	Edits  []events.Edit
	Stages []events.StageReport
	Used   []events.Stage
	// Before and After estimate the history, without the framing of a
	// conversation; After counts a ceiling for every text that compactd makes.
	Before, After measure.Tokens
	Messages      int // before any stage

	Entries []measure.Entry // the view
}

// Uses reports whether a stage made edits.
func (p *Plan) Uses(s events.Stage) bool { return slices.Contains(p.Used, s) }

// Failure is why a plan made nothing smaller.
func (p *Plan) Failure() events.Code {
	if p.Messages <= MinMessages {
		return events.CodeNotEnoughMessages
	}
	return events.CodeNothingToDo
}

// Means is what a plan may use beside the cheap stages.
type Means struct {
	Target measure.Tokens // of the history
	// Summary is ready to take the place of its range; nil for none. Force uses it
	// whatever the usage.
	Summary *Summary
	Force   bool
	// Truncate allows the last stage. It cuts contents too while the history is
	// over Enough: the target, if it is Exact, else just below the trigger.
	Truncate bool
	Exact    bool
	Enough   measure.Tokens
	// Hidden lists what may be restored where messages were hidden, newest first;
	// nil for nothing.
	Hidden func() []measure.Entry
}

// Summary is a summary that waits to take the place of its range.
type Summary struct {
	Seq   measure.Seq     `json:"seq"` // where the log holds it
	From  events.Position `json:"from"`
	To    events.Position `json:"to"`
	Units int64           `json:"units"` // as it counts
}

// MakePlan runs the stages in their order, each only while the history is over the target
// of m, and repairs what is left. What a stage did counts only if it made the history
// smaller. window scales the bounds of prune.
func MakePlan(entries []measure.Entry, f events.Format, r measure.Rate, p *policy.Policy, window measure.Tokens, m Means) Plan {
	run := newRunner(entries, f, r)
	d := run.draft
	stage := func(name events.Stage, enabled, force bool, work func()) {
		if enabled && (run.plan.After > m.Target || force) {
			run.stage(name, force, work)
		}
	}
	most := min(m.Target, run.plan.Before-1) // what is restored must not make a history larger
	stage(events.StagePrune, p.Prune.Enabled, false, func() {
		if d.Limit(&p.ToolOutput) && d.Repaired() <= m.Target {
			return
		}
		if d.ClearOld(&p.Prune.Micro) && d.Repaired() <= m.Target {
			return
		}
		d.Prune(p.Prune.Scaled(p.Prune.ProtectTokens, window), p.Prune.Scaled(p.Prune.MinimumTokens, window), p.Prune.ProtectedTools)
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
	return run.done()
}

// ClearPlan is a plan of the stage prune alone, in which work does the clearing. It
// makes no edits where the history would not become smaller.
func ClearPlan(entries []measure.Entry, f events.Format, r measure.Rate, work func(*Draft)) Plan {
	run := newRunner(entries, f, r)
	run.stage(events.StagePrune, false, func() { work(run.draft) })
	return run.done()
}

// TruncateOldPlan hides what is from before a sequence behind a truncation notice, the
// first exchange included, since its text will be gone. It makes no edits where calls of
// what is old are still open, or nothing newer is there.
func TruncateOldPlan(entries []measure.Entry, f events.Format, r measure.Rate, before measure.Seq) Plan {
	run := newRunner(entries, f, r)
	d := run.draft
	run.stage(events.StageTruncate, true, func() {
		d.hiding(func() {
			start := d.AfterSystem()
			end := start + max(d.Old(before), 1)
			for c := range d.cuts(start) {
				if c.end >= end {
					d.hide(start, c.end, measure.TruncationAt(&d.entries[start]))
					return
				}
			}
		})
	})
	return run.done()
}

// RewindPlan puts an earlier view in the place of another, repaired.
func RewindPlan(from, to []measure.Entry, f events.Format, r measure.Rate) Plan {
	run := newRunner(to, f, r)
	run.plan.Before = NewDraft(from, f, r).Repaired()
	plan := run.done()
	plan.After = run.draft.Tokens()
	return plan
}

// runner runs stages over a draft, and makes a plan of what they did.
type runner struct {
	draft *Draft
	plan  Plan
}

func newRunner(entries []measure.Entry, f events.Format, r measure.Rate) *runner {
	d := NewDraft(entries, f, r)
	tokens := d.Repaired()
	return &runner{d, Plan{Before: tokens, After: tokens, Messages: d.Messages()}}
}

// stage runs one stage. What it did is undone where it did not make the history
// smaller, unless it is forced.
func (r *runner) stage(name events.Stage, force bool, work func()) {
	plan, d := &r.plan, r.draft
	report := events.StageReport{Name: name, TokensBefore: int64(plan.After)}
	was := d.savepoint()
	work()
	if after := d.Repaired(); after < plan.After || force {
		plan.After = after
	} else {
		d.rollback(was)
	}
	report.TokensAfter, report.Edits = int64(plan.After), int64(len(d.edits)-len(was.edits))
	plan.Stages = append(plan.Stages, report)
	if report.Edits > 0 {
		plan.Used = append(plan.Used, name)
	}
}

// done repairs what the stages left, and returns the plan.
func (r *runner) done() Plan {
	r.draft.Repair()
	r.plan.Edits, r.plan.Entries = r.draft.edits, r.draft.entries
	return r.plan
}
