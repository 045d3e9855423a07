package compaction

import (
	"cmp"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// Overflow is what a provider reported when it refused a call as too long.
type Overflow struct {
	Model *events.Model // of the call; nil is the session's
	// Limit is what the provider takes and Actual what it counted, 0 where it reported
	// neither. Output is the maximum output that had to fit the limit too, 0 if none had.
	Limit, Actual, Output Tokens
	Generation            int64 // that the agent had applied, −1 for the newest
	// Bytes: it is the size of the request that was refused, which shows nothing of a window.
	Bytes bool
	// Media: it is the number of images and pages that was refused, and Limit is of them.
	Media bool
	// Thinking: it is thinking that is bound to another history, and the history is to go on
	// without.
	Thinking bool
	// Unrecorded is our estimate of the input, where the call was made with a history that the
	// session has not: it shows the window alone. 0 for the session's own.
	Unrecorded Tokens
	// Refused is why it is no overflow, nil when it is one.
	Refused error
}

// NewOverflow makes the request of a session.overflow.
func NewOverflow(o Overflow, id string, seq Seq) *Request {
	return &Request{Seq: seq, ID: id, kind: events.KindOverflow, body: &o}
}

// overflowed records the provider's limit, stated or inferred, until the model changes, and its count for the
// newest published history.
func (l *Ledger) overflowed(o *Overflow) {
	if o.Thinking {
		l.prompts.Refused = l.LastTurn()
		return
	}
	if m := l.completeModel(o.Model); m != nil && *m != l.model {
		l.change(m)
	}
	if o.Media {
		return // nothing of the window
	}
	if o.Unrecorded > 0 {
		l.refusedAt(o.unrecorded())
		return
	}
	l.overflows++
	switch {
	case o.Limit > 0:
		l.statedAt(o.Limit - max(0, min(o.Output-l.cache.reserve, o.Limit/2)))
	case !o.Bytes:
		l.refusedAt(l.sizeOf(o))
	}
	if !o.Bytes { // which are no tokens
		l.refused(o)
	}
}

// sizeOf is the input that was refused: as the provider counted it, else by our estimate.
func (l *Ledger) sizeOf(o *Overflow) Tokens {
	estimate := l.estimateOf(o)
	if o.Actual <= 0 {
		return estimate
	}
	return max(min(o.Actual, estimate*maxCounted), l.usage.Least.Ceil(l.prompt().Total()))
}

// unrecorded is the input that was refused as we count it. A limit below the provider's count is
// as far below our estimate.
func (o *Overflow) unrecorded() Tokens {
	if limit := o.input(); 0 < limit && limit < o.Actual {
		return max(Tokens(measure.CeilDiv(int64(o.Unrecorded)*int64(limit), int64(o.Actual))), o.Unrecorded/maxCounted)
	}
	return o.Unrecorded
}

// estimateOf is our estimate of the input that was refused.
func (l *Ledger) estimateOf(o *Overflow) Tokens {
	return l.estimated() + l.savedSince(o)
}

// savedSince is what compactions have taken off since the call that was refused.
func (l *Ledger) savedSince(o *Overflow) (saved Tokens) {
	if o.Generation >= 0 && o.Generation < l.Generation() {
		for _, g := range l.generations[o.Generation:] {
			saved += g.Saved
		}
	}
	return saved
}

// completeModel completes the model of a call: a report that only names the session's own
// leaves its maximum output and window.
func (l *Ledger) completeModel(m *events.Model) *events.Model {
	if m == nil || m.Provider != l.model.Provider || m.Name != l.model.Name {
		return m
	}
	whole := *m
	whole.MaxOutputTokens = cmp.Or(m.MaxOutputTokens, l.model.MaxOutputTokens)
	whole.ContextWindow = cmp.Or(m.ContextWindow, l.model.ContextWindow)
	return &whole
}

// refused corrects the estimate of the view that was refused: it took what the provider
// counted, and more than there was room for, whatever we had thought.
func (l *Ledger) refused(o *Overflow) {
	at, before := l.prompt().Total(), l.usage
	count := max(l.sizeOf(o), l.thresholds().Available+1) - l.savedSince(o)
	l.usage.dropAnchor()
	if o.Actual > 0 && before.Estimated == 0 && l.cache.rate.Classes { // nothing else shows what our estimate is worth
		l.usage.grow(count, at)
	}
	l.usage.count(count, at)
	switch c := &l.usage; {
	case l.overflows > 1 && c.Correction > 0: // the correction did not shrink with the content, so no content causes it
		c.Covered = 0
	case before.FixedAt == 0: // which content took more than was thought is unknown: each its part
		c.Even, c.Fixed = true, 0
	default:
		c.Even, c.Fixed = true, min(before.Fixed, max(c.Correction, 0))
	}
}

// maxCounted bounds the count in a provider's error, as a multiple of our own
// estimate: the text is not to be trusted.
const maxCounted = 3

// overflow answers at once, without waiting for a model: every stage may run, with
// a target that shrinks with each repetition. A summary may follow.
func (d *decision) overflow(l *Ledger, o *Overflow) {
	if o.Refused != nil {
		d.outs = Reject(d.event, o.Refused, d.config)
		return
	}
	if err := d.config.fits("model.max_output_tokens", o.Model, l.cache.policy); err != nil {
		d.outs = Reject(d.event, err, d.config)
		return
	}
	next := l.fork() // a plan needs the new limit; applyRequest records it in the next ledger, also without a plan
	next.overflowed(o)
	if o.Thinking { // a generation of its own, whose view has the same texts without thinking
		d.emitPlan(next, budgeted{Plan: next.history().Plan(0), total: next.thresholds().Target}, events.ReasonOverflow)
		return
	}
	if o.Media || o.Bytes && next.cache.media.Total() > 0 { // most of the bytes are theirs
		d.refusedMedia(next, o)
		return
	}
	if o.Unrecorded > 0 {
		d.emitUnchanged(next, events.ReasonOverflow, events.CodeNothingToDo)
		return
	}
	available := next.thresholds().Available
	refused := next.corrected(next.prompt().Total()) + next.savedSince(o)
	target := min(emergencyTarget(min(cmp.Or(o.input(), available), refused), next.overflows), available)
	var job *events.Job
	if next.maySummarize(d.now) && !next.waitsAtTrigger(d.now) { // as the history is before the plan
		job = d.planJob(next, events.LaneEmergency)
	}
	plan := next.plan(target, stage.Means{Summary: next.prepared, Truncate: true, Exact: true})
	before, after := next.inputs(&plan)
	var body *events.Compacted
	if after < before {
		body = d.emitPlan(next, plan, events.ReasonOverflow)
	} else {
		code := plan.Failure()
		if o.Generation >= 0 && o.Generation < l.Generation() {
			code = events.CodeNewerGeneration
		}
		body = d.emitUnchanged(next, events.ReasonOverflow, code)
		body.Stages = next.reports(&plan)
		if o.Bytes && code != events.CodeNewerGeneration { // which the budget does not count
			body.Exceeded()
		}
	}
	if plan.Uses(events.StageTruncate) || !body.Budget.WithinBudget {
		d.emitJob(job)
	}
	if slices.ContainsFunc(d.outs, isJob) {
		d.abort(l, next)
	}
}

// refusedMedia answers a provider that takes fewer media than it was sent, whatever we know of
// its limits: the oldest are cleared, down to three quarters of the limit that it stated, or of
// one below what is in view; half of them where it takes fewer bytes.
func (d *decision) refusedMedia(l *Ledger, o *Overflow) {
	takes, count, newer := l.cache.takes, l.cache.media.Total(), o.Generation >= 0 && o.Generation < l.Generation()
	switch {
	case o.Bytes:
		takes.Total = count / 2
	case o.Limit > 0:
		takes.Total = int(min(o.Limit, events.MaxTokens))
	}
	if !newer && !o.Bytes && (o.Limit == 0 || takes.Total >= count) {
		takes.Total = count - 1
	}
	takes.Total = cmp.Or(takes.Total, -1) // none
	if d.limitMedia(l, takes, false, events.ReasonOverflow) {
		return
	}
	body := d.emitUnchanged(l, events.ReasonOverflow, events.CodeNewerGeneration)
	if !newer {
		body.Exceeded()
	}
}

// input is how much input the provider takes beside the output that had to fit its limit,
// 0 where it stated no limit. An output that takes more than half of it is not believed.
func (o *Overflow) input() Tokens { return o.Limit - min(o.Output, o.Limit/2) }

// emergencyTarget is what a compaction after an overflow aims for, in tokens of the whole
// input: 0.7 of what the provider takes. Each repetition without a call in between that
// succeeded takes 0.7 of what the one before aimed for.
func emergencyTarget(takes Tokens, repetition int64) Tokens {
	for range min(repetition, maxRepetitions) {
		takes = emergencyShare.Share(takes)
	}
	return takes
}

const (
	emergencyShare PPM = 700_000
	// maxRepetitions is where it ends: 0.7 to the tenth is 3 % of the input.
	maxRepetitions = 10
)
