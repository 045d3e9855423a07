package stage

import (
	"iter"
	"slices"
	"sync" //nolint:depguard // a pool of memory alone; no result depends on it

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/traits"
)

// Plan is a compaction decided on entries alone.
type Plan struct {
	Edits  []events.Edit
	Stages []events.StageReport
	Used   []events.Stage
	// Before and After estimate the history, without the framing of a conversation; After uses a ceiling for
	// every text that compactd makes.
	Before, After measure.Tokens
	Messages      int // before any stage

	Entries []measure.Entry // the view
}

// Uses reports whether a stage made edits.
func (p *Plan) Uses(s events.Stage) bool { return slices.Contains(p.Used, s) }

// Failure is the reason why a plan made nothing smaller.
func (p *Plan) Failure() events.Code {
	if p.Messages <= MinMessages {
		return events.CodeNotEnoughMessages
	}
	return events.CodeNothingToDo
}

// Means are the options of a plan beside the cheap stages.
type Means struct {
	Target measure.Tokens // of the history
	// Whole is the target once the plan has hidden messages: a hidden message also takes the tokens that its
	// provider counts beyond its contents.
	Whole measure.Tokens
	// Least bounds from below what a choice leaves of the history, up to WholeEnough. Truncate ignores it.
	Least measure.Tokens
	// Summary is ready to take the place of its range; nil for none. Force uses it whatever the usage. All
	// hides its whole range, even if some of it would fit.
	Summary *Summary
	Force   bool
	All     bool
	// Truncate allows the last stage. It also cuts contents while the history is over Enough: the target if
	// Exact, else just below the trigger. WholeEnough replaces Enough once the plan has hidden messages.
	Truncate            bool
	Exact               bool
	Enough, WholeEnough measure.Tokens
	// Hidden yields the entries that may be restored after messages were hidden, newest first; nil for none.
	// Files may be restored up to Whole, texts of skills up to Skills, which is at least Whole: for a history
	// near or above it, up to half of the way to Enough. No text goes beyond WholeEnough.
	Hidden iter.Seq[measure.Entry]
	Skills measure.Tokens
}

// chosen is the target of a choice, which hides messages. Before a truncation there is no least.
func (m *Means) chosen() measure.Tokens {
	if m.Truncate {
		return m.Whole
	}
	return max(m.Whole, min(m.Least, m.WholeEnough))
}

// bounds are the target and the enough of the plan in its present state.
func (m *Means) bounds(d *Draft) (target, enough measure.Tokens) {
	if slices.ContainsFunc(d.edits, hides) {
		return m.Whole, m.WholeEnough
	}
	return m.Target, m.Enough
}

// Summary is a summary that can take the place of its range.
type Summary struct {
	Seq   measure.Seq     `json:"seq"` // of its event in the log
	From  events.Position `json:"from"`
	To    events.Position `json:"to"`
	Units int64           `json:"units"` // counted units
	// Unused counts the compactions that did not use it, or the summaries merged into it.
	Unused int64 `json:"unused,omitzero"`
	Spare  Spare `json:"spare,omitzero"` // lines of its range
	// Used are its spare lines with identifiers that the agent used since the summary was requested, and Kept
	// those in its message; Units includes them.
	Used measure.Spares `json:"used,omitzero"`
	Kept measure.Spares `json:"-"`
}

// History is the input of a plan.
type History struct {
	View   func(out []measure.Entry) []measure.Entry // appends the entries in view
	Format events.Format
	Rate   measure.Rate
	Pins   measure.Tokens // the target that bounds pins by a share
	Held   int64          // the last of the turns that must not change, 0 for none
	Fresh  measure.Seq    // texts from before it will leave the log
	Heads  bool           // a cleared failure keeps its first line
	Keep   policy.Keep    // worth of contents for a choice
	Media  traits.Media   // the provider's limits
	// Refused: the provider refuses the media in view, whatever their tokens.
	Refused bool
}

// Step is a stage of a plan.
type Step struct {
	Name  events.Stage
	Force bool // whatever the usage, and even if the history gets no smaller
	Run   func(*Draft)
}

// MakePlan runs the stages of a policy in their order. window scales the bounds of prune.
func MakePlan(h History, p *policy.Policy, window measure.Tokens, m Means) Plan {
	var steps []Step
	stage := func(enabled bool, s Step) {
		if enabled {
			steps = append(steps, s)
		}
	}
	stage(p.Prune.Enabled || h.Refused, Step{Name: events.StagePrune, Force: h.Refused, Run: func(d *Draft) {
		over := func() bool { return p.Prune.Enabled && d.Repaired() > m.Target }
		if over() {
			d.ClearOld(&p.Prune.Micro)
		}
		media := d.LimitMedia(h.Media, p.Prune.ProtectedTools)
		if over() {
			d.Limit(&p.ToolOutput, p.ToolOutput.OnArrival())
		}
		if !over() {
			return
		}
		d.reduce(p, window, &m)
		if media && !d.saves(m.Summary) && d.ReduceMedia(m.Target, &p.Prune) { // a summary leaves them behind as it is
			d.reduce(p, window, &m) // results that did not reach the target without the media
		}
		if p.Prune.Micro.Enabled && over() {
			d.ClearOld(&p.Prune.Micro) // reads that cleared placeholders referred to
		}
	}})
	stage(p.Deduplicate.Enabled, Step{Name: events.StageDeduplicate, Run: func(d *Draft) { d.Deduplicate(p.Deduplicate.Minimum) }})
	stage(m.Summary != nil, Step{events.StageSummarize, m.Force, func(d *Draft) {
		by := aimOf(p, window, m.chosen())
		if m.All {
			by = nil
		}
		d.hiding(func() { d.condense(m.Summary, by) })
		if by == nil {
			d.restore(&m, &p.Restore)
		} else {
			d.restoreBeside(&m, p.Restore)
		}
		d.keepUsed(m.Summary, &m)
	}})
	stage(p.Truncate.Enabled && m.Truncate, Step{Name: events.StageTruncate, Run: func(d *Draft) {
		if target, _ := m.bounds(d); d.Repaired() <= target {
			return
		}
		d.hiding(func() {
			d.keepPins()
			d.truncateBehind(m.Whole, p.Truncate.Fraction)
		})
		d.finishTruncate(&m, &p.Prune)
		d.restore(&m, &p.Restore)
	}})
	h.Heads, h.Keep = p.Prune.ToTarget, p.Keep
	return h.Plan(m.Target, steps...)
}

// drafts are for reuse: a large history needs large lists.
var drafts = sync.Pool{New: func() any { return new(Draft) }}

// Plan runs steps in order, each only while the history is over a target, and repairs the result. A step
// counts only if it made the history smaller.
func (h History) Plan(target measure.Tokens, steps ...Step) Plan {
	d := drafts.Get().(*Draft)
	d.format, d.rate, d.room, d.heads, d.keep = h.Format, h.Rate, h.View(d.room[:0]), h.Heads, h.Keep
	d.set(d.room)
	d.Hold(h.Held)
	d.Pin(h.Pins, h.Fresh)
	d.before = d.Repaired()
	plan := Plan{Before: d.before, After: d.before, Messages: d.messages}
	for _, s := range steps {
		if plan.After > target || s.Force {
			plan.take(d, s)
		}
	}
	d.Repair()
	plan.Edits, plan.Entries = append(plan.Edits, d.edits...), d.entries
	if len(d.entries) > 0 && &d.entries[0] == &d.room[0] {
		plan.Entries = slices.Clone(d.entries)
	}
	d.recycle()
	return plan
}

// recycle keeps the memory of a plan for the next, unless it is larger than most need.
func (d *Draft) recycle() {
	clear(d.changes[:cap(d.changes)])
	clear(d.gone)
	d.entries, d.edits, d.gone = nil, d.edits[:0], d.gone[:0]
	if len(d.whole)+len(d.lines) > fewReads {
		d.whole, d.lines = nil, nil // they are cleared each time they are used
	}
	drafts.Put(d)
}

// fewReads is the size up to which maps of reads are kept.
const fewReads = 4096

// take takes one step.
func (p *Plan) take(d *Draft, s Step) {
	report := events.StageReport{Name: s.Name, TokensBefore: int64(p.After)}
	was := d.savepoint()
	d.before = p.After // restored content beyond that would undo the step
	d.missing, d.returned, d.missingLines, d.keeps = 0, 0, 0, 0
	s.Run(d)
	if after := d.Repaired(); after < p.After || s.Force {
		p.After = after
		report.Missing, report.Restored = int64(d.missing), int64(d.returned)
		report.LinesMissing, report.LinesKept = int64(d.missingLines), int64(d.keeps)
	} else {
		d.rollback(was)
	}
	report.TokensAfter, report.Edits = int64(p.After), int64(len(d.edits)-len(was.edits))
	p.Stages = append(p.Stages, report)
	if report.Edits > 0 {
		p.Used = append(p.Used, s.Name)
	}
}
