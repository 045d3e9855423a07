package compaction

import (
	"cmp"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// Overflow is a provider's refusal of a call as too long.
type Overflow struct {
	Model *events.Model // of the call; nil is the session's
	// Limit is the provider's limit and Actual its count, 0 if not reported. Output is the maximum output
	// that had to fit the limit too, 0 for none.
	Limit, Actual, Output measure.Tokens
	Generation            int64 // that the agent had applied, −1 for the newest
	// Bytes: the size of the request was refused, which shows nothing of the window.
	Bytes bool
	// Media: the number of images and pages was refused, and Limit counts them.
	Media bool
	// Thinking: thinking that is bound to another history was refused; the history goes on without it.
	Thinking bool
	// Unrecorded is our estimate of the input of a call with a history that the session does not have: it
	// shows only the window. 0 for the session's own history.
	Unrecorded measure.Tokens
	// Refused is why the refusal is another error; nil for an overflow.
	Refused error
}

// NewOverflow makes the request of a session.overflow.
func NewOverflow(o Overflow, id string, seq measure.Seq) *Request {
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
		return // no fact about the window
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
	if !o.Bytes { // bytes are not tokens
		l.refused(o)
	}
}

// sizeOf is the refused input: the provider's count, else our estimate.
func (l *Ledger) sizeOf(o *Overflow) measure.Tokens {
	estimate := l.estimated() + l.savedSince(o)
	if o.Actual <= 0 {
		return estimate
	}
	return max(min(o.Actual, estimate*maxCounted), l.usage.Least.Ceil(l.prompt().Total()))
}

// unrecorded is the refused input by our estimate, scaled down if the limit is below the provider's count.
func (o *Overflow) unrecorded() measure.Tokens {
	if limit := o.input(); 0 < limit && limit < o.Actual {
		return max(measure.Tokens(measure.CeilDiv(int64(o.Unrecorded)*int64(limit), int64(o.Actual))), o.Unrecorded/maxCounted)
	}
	return o.Unrecorded
}

// savedSince is the saving of compactions since the refused call.
func (l *Ledger) savedSince(o *Overflow) (saved measure.Tokens) {
	if o.Generation >= 0 && o.Generation < l.Generation() {
		for _, g := range l.generations[o.Generation:] {
			saved += g.Saved
		}
	}
	return saved
}

// completeModel completes the model of a call: a report that only names the session's model leaves out its
// maximum output and window.
func (l *Ledger) completeModel(m *events.Model) *events.Model {
	if m == nil || m.Provider != l.model.Provider || m.Name != l.model.Name {
		return m
	}
	whole := *m
	whole.MaxOutputTokens = cmp.Or(m.MaxOutputTokens, l.model.MaxOutputTokens)
	whole.ContextWindow = cmp.Or(m.ContextWindow, l.model.ContextWindow)
	return &whole
}

// refused corrects the estimate of the refused view: the call took at least the provider's count, and more
// than the available input.
func (l *Ledger) refused(o *Overflow) {
	at, before := l.prompt().Total(), l.usage
	count := max(l.sizeOf(o), l.thresholds().Available+1) - l.savedSince(o)
	l.usage.dropAnchor()
	if o.Actual > 0 && before.Estimated == 0 && l.cache.rate.Classes { // without other counts
		l.usage.grow(count, at)
	}
	l.usage.count(count, at)
	switch c := &l.usage; {
	case l.overflows > 1 && c.Correction > 0: // the correction did not shrink with the content, so no content causes it
		c.Covered = 0
	case before.FixedAt == 0: // the content that exceeded the estimate is unknown: each takes its part
		c.Even, c.Fixed = true, 0
	default:
		c.Even, c.Fixed = true, min(before.Fixed, max(c.Correction, 0))
	}
}

// maxCounted bounds the count in a provider's error, as a multiple of our own
// estimate: the text is not to be trusted.
const maxCounted = 3

// overflow answers at once, without waiting for a model. Every stage may run, and the target shrinks with
// each repetition. A summary may follow.
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
	if o.Thinking { // a generation of its own, with the same texts but without thinking
		d.emitPlan(next, next.planOf(), events.ReasonOverflow)
		return
	}
	if o.Media || o.Bytes && next.cache.media.Total() > 0 { // media are most of the bytes
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
	if next.maySummarize(d.now) && !next.waitsAtTrigger(d.now) { // for the history before the plan
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

// refusedMedia answers a provider that accepts fewer media. The oldest are cleared: down to three quarters of
// the stated limit, else of one below the media in view; or half of them after a refusal by bytes.
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

// input is the provider's limit less the output that had to fit it, 0 without a limit. An output above half
// of the limit is not believed.
func (o *Overflow) input() measure.Tokens { return o.Limit - min(o.Output, o.Limit/2) }

// emergencyTarget is the target of a compaction after an overflow, in tokens of the whole input: 0.7 of the
// accepted input, and 0.7 of the last target for each repetition without a successful call in between.
func emergencyTarget(takes measure.Tokens, repetition int64) measure.Tokens {
	for range min(repetition, maxRepetitions) {
		takes = emergencyShare.Share(takes)
	}
	return takes
}

const (
	emergencyShare measure.PPM = 700_000
	// maxRepetitions bounds the repetitions that shrink it: 0.7 to the tenth is 3 % of the input.
	maxRepetitions = 10
)
