package compaction

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// budgeted is a plan with its targets, of the history and of the whole input.
type budgeted struct {
	stage.Plan
	target, total measure.Tokens
}

// plan compacts the history in view, so that the next call takes at most total.
func (l *Ledger) plan(total measure.Tokens, m stage.Means) budgeted {
	g := &l.cache
	m.Target, m.Hidden = l.availableFor(total), l.restorable
	m.Whole = l.available(total, true)
	m.Skills, m.WholeEnough = m.Whole, m.Whole
	if m.Enough = m.Target; !m.Exact {
		m.Skills = l.available((total+l.thresholds().Trigger)/2, true)
		m.Enough = max(m.Target, l.availableFor(l.thresholds().Trigger-1))
		m.WholeEnough = max(m.Whole, l.available(l.thresholds().Trigger-1, true))
	}
	m.Least = l.least(total)
	if !g.policy.Summarize.Enabled { // switched off since it was requested
		m.Summary = nil
	}
	out := budgeted{stage.MakePlan(l.history(), g.policy, g.window, m), m.Target, total}
	if out.whole() {
		out.target = m.Whole
	}
	return out
}

// planOf runs steps alone.
func (l *Ledger) planOf(steps ...stage.Step) budgeted {
	total := l.thresholds().Target
	return budgeted{l.history().Plan(0, steps...), l.availableFor(total), total}
}

// leastShare is the least share of the room for the history that a choice leaves.
const leastShare measure.PPM = 250_000

// least is the part of the history that a choice leaves, by our estimate: the target, or leastShare if that
// is less. A provider may count so much beside the messages that no clearing reaches the target.
func (l *Ledger) least(total measure.Tokens) measure.Tokens {
	fixed := l.fixed(l.prompt())
	room := min(total-fixed, leastShare.Share(l.thresholds().Available-fixed))
	return measure.FloorDiv(room*measure.Million, measure.Tokens(l.usage.ratio())) + l.leading()
}

// emitPlan emits a compaction by a plan, and makes its edits in l.
func (d *decision) emitPlan(l *Ledger, plan budgeted, reason events.Reason) *events.Compacted {
	before, stages, cache := l.input(plan.Before, plan.whole()), l.reports(&plan), l.breaks(&plan, d.now).report()
	l.generations = append(l.generations, generation{From: l.Generation()})
	l.resize(plan.After, plan.whole())
	body := d.newCompacted(l, reason)
	body.Compacted, body.TargetTokens = true, int64(plan.total)
	body.TokensBefore, body.TokensAfter = int64(before), body.Budget.EstimatedInput
	body.TokensSaved = body.TokensBefore - body.TokensAfter
	body.StagesUsed, body.Stages, body.Edits, body.Cache = plan.Used, stages, plan.Edits, cache
	if !body.Budget.WithinBudget && reason != events.ReasonRewind { // a rewind is emitted as requested
		body.Exceeded()
	}
	d.emit(events.KindCompacted, func(h events.Header) any { body.Header = h; return body })
	d.outs[len(d.outs)-1].View = l.viewOf(plan.Entries, body.Generation)
	return body
}

// emitUnchanged emits that the history stays as it is, with the reason.
func (d *decision) emitUnchanged(l *Ledger, reason events.Reason, code events.Code) *events.Compacted {
	body := d.newCompacted(l, reason)
	body.Code = code
	body.TokensBefore = body.Budget.EstimatedInput
	body.TokensAfter = body.TokensBefore
	if !body.Budget.WithinBudget && reason != events.ReasonManual && reason != events.ReasonRewind { // these state the reason
		body.Exceeded()
	}
	d.emit(events.KindCompacted, func(h events.Header) any { body.Header = h; return body })
	return body
}

// newCompacted returns the fields that every session.compacted has.
func (d *decision) newCompacted(l *Ledger, reason events.Reason) *events.Compacted {
	b := l.Budget()
	return &events.Compacted{
		Generation: l.Generation(), Reason: reason, Config: d.config.Hash(),
		CausedBy: d.cause(), Through: l.through(), Format: l.format, BoundThinking: l.bindsThinking(),
		TargetTokens: int64(l.thresholds().Target), AvailableInput: b.AvailableInput,
		StagesUsed: []events.Stage{}, Stages: []events.StageReport{}, Edits: []events.Edit{}, Budget: b,
	}
}

// whole reports whether a plan removes whole messages, not only contents.
func (p *budgeted) whole() bool {
	for i := range p.Edits {
		if op := p.Edits[i].Op; op == events.OpCondense || op == events.OpTruncate {
			return true
		}
	}
	return false
}

// inputs is the next call's input before and after a plan.
func (l *Ledger) inputs(p *budgeted) (before, after measure.Tokens) {
	return l.input(p.Before, p.whole()), l.input(p.After, p.whole())
}

// saved is the decrease of the next call's input by a plan.
func (l *Ledger) saved(p *budgeted) measure.Tokens {
	before, after := l.inputs(p)
	return before - after
}

// reports are the stages of a plan, in tokens of the whole input.
func (l *Ledger) reports(p *budgeted) []events.StageReport {
	for i := range p.Stages {
		s := &p.Stages[i]
		s.TokensBefore = int64(l.input(measure.Tokens(s.TokensBefore), p.whole()))
		s.TokensAfter = int64(l.input(measure.Tokens(s.TokensAfter), p.whole()))
	}
	return p.Stages
}
