package compaction

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// manual answers a session.compact: through a job and its summary, or at once if a summary is not worth it or
// cannot be made.
func (d *decision) manual(l *Ledger, in *events.Compact) {
	m := &events.Manual{Cause: d.cause(), Model: in.Model, Policy: in.Policy}
	call, err := l.under(m, d.config)
	if err != nil {
		d.outs = Reject(d.event, err, d.config)
		return
	}
	if job := d.planManual(call, m, in.Focus); job != nil {
		d.emitJob(job)
		d.abort(l, l)
		return
	}
	d.noteLocked(l.cache.policy, m.Policy, nil)
	next := l.fork()
	d.answerManual(next, call, m, stage.Means{Truncate: true, Exact: true}, "")
	d.emitNotes(next)
	d.abort(l, next)
}

// under returns the session with the model and the policy of a request, and without the failures that kept it
// from summaries.
func (l *Ledger) under(m *events.Manual, c *Config) (*Ledger, error) {
	call := l.fork()
	call.job, call.breaker = nil, breaker{}
	policy := l.cache.policy
	if m.Policy != nil {
		p, err := policy.With(m.Policy)
		if err != nil {
			return nil, err
		}
		policy = &p
	}
	if err := c.fits("model.max_output_tokens", m.Model, policy); err != nil {
		return nil, err
	}
	if m.Model != nil && *m.Model != l.model {
		call.model, call.usage, call.limits = *m.Model, calibration{}, limits{}
	}
	call.measureWith(policy)
	return call, nil
}

// planManual returns the job for a summary of the content that a request may condense: all but the newest
// messages, or more if the target needs it.
func (d *decision) planManual(l *Ledger, m *events.Manual, focus string) *events.Job {
	g := &l.cache
	if !l.maySummarize(d.now) {
		return nil
	}
	draft := l.draft()
	draft.DropRestored()
	ceiling := g.policy.Summarize.Ceiling(l.thresholds().Available)
	keep := max(stage.MinMessages, int(measure.CeilDiv(int64(draft.Messages())*int64(g.policy.Summarize.Keep), measure.Million)))
	newest := draft.TokensFrom(draft.Newest(keep))
	w := jobSpec{lane: events.LaneNormal, recent: min(l.availableFor(l.thresholds().Target)-ceiling, newest), least: 1, ceiling: ceiling, small: true}
	job := d.jobFor(l, draft, w)
	if job != nil {
		job.Focus, job.Manual = focus, m
	}
	return job
}

// answerManual carries out a request under call, its own settings, and emits the result for l; code is the
// reason without a summary.
func (d *decision) answerManual(l, call *Ledger, m *events.Manual, means stage.Means, code events.Code) {
	plan := call.plan(call.thresholds().Target, means)
	if call.saved(&plan) > 0 {
		body := d.emitPlan(call, plan, events.ReasonManual)
		body.Request = &m.Cause
		l.generations = append(l.generations, generation{From: l.Generation()})
		l.resize(stage.NewDraft(plan.Entries, l.format, l.cache.rate).Tokens(), plan.whole())
		if body.Budget = l.Budget(); !body.Budget.WithinBudget {
			body.Exceeded()
		}
		return
	}
	if code == "" {
		code = plan.Failure()
	}
	d.emitUnchanged(l, events.ReasonManual, code).Request = &m.Cause
}

// summarized answers a request whose job has ended. l has received the result.
func (d *decision) summarized(l *Ledger, m *events.Manual, f resultMatch) {
	call, err := l.under(m, d.config)
	if err != nil { // the config has changed, and no longer accepts the request's policy
		call = l.fork()
	} else {
		d.noteLocked(l.cache.policy, m.Policy, nil)
	}
	switch {
	case f == fit:
		d.answerManual(l, call, m, stage.Means{Summary: l.prepared, Force: true, All: true}, "")
	case call.Budget().ShouldCompact:
		d.answerManual(l, call, m, stage.Means{Truncate: true, Exact: true}, events.CodeIncompleteResponse)
	default:
		d.emitUnchanged(l, events.ReasonManual, events.CodeIncompleteResponse).Request = &m.Cause
	}
	d.emitNotes(l)
}

// abort answers the request that before waits for. after is the session after the event, which no longer
// waits for it.
func (d *decision) abort(before, after *Ledger) {
	if j := before.job; j != nil && j.Manual != nil {
		d.emitUnchanged(after, events.ReasonManual, events.CodeAborted).Request = &j.Manual.Cause
	}
}

// answers reports whether the job was made for a request.
func (j *pendingJob) answers(request *events.Cause) bool {
	return j.Manual != nil && j.Manual.Cause == *request
}
