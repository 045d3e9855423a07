package llm

import (
	"context"
	"errors"
	"time"

	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
	"compactd/internal/summarize/model"
)

// leastRoom is the least room for which a model is called, in units: ten headings take
// a good part of it.
const leastRoom = 1_500

// Summarizer lets models write summaries, and has the embedded summarizer for when
// none of them does. The record beside the text, the user's first request and
// rules are made by code, whichever writes.
type Summarizer struct{ models []model.Model }

// New returns a summarizer that calls the models in their order.
func New(models ...model.Model) *Summarizer { return &Summarizer{models} }

// Summarize returns a summary of the first model whose answer is usable, else of
// the embedded summarizer. Usage is the sum over all attempts. Its errors are
// those of [extract.Summarizer.Summarize], and [*summarize.RetryAfterError].
func (n *Summarizer) Summarize(ctx context.Context, in summarize.Input) (*events.Summary, error) {
	in, err := summarize.SanitizeInput(ctx, in)
	if err != nil {
		return nil, err
	}
	t := newPromptBuilder(ctx, in)
	if t.digest.Empty() {
		return nil, summarize.ErrNothing
	}
	models := n.models
	if summarize.Room(in.MaxUnits, nil) < leastRoom {
		models = nil
	}
	var s *events.Summary
	var waits *summarize.RetryAfterError
	spent, wrote, err := try(ctx, models, in.Writer, in.OnAttempt, func(m model.Model) (usage events.SummaryUsage, err error) {
		if s, usage, err = t.complete(ctx, m); err != nil {
			waits = shorterWait(waits, err, in.MaxWait)
		}
		return usage, err
	})
	if err == nil && !wrote {
		if waits != nil && spent == (events.SummaryUsage{}) { // another try would pay for the answers of no use again
			return nil, waits
		}
		s, err = extract.FromDigest(t.digest, in.Limit())
	}
	if err != nil {
		return nil, err
	}
	s.Usage = spent
	return summarize.RedactSummary(extract.AddSpare(&in, s)), nil
}

// try lets models write in their order until one of them did, and returns what all of them used.
// The error is that of the context.
func try(
	ctx context.Context, models []model.Model, by summarize.Writer, onAttempt func(summarize.Attempt),
	write func(model.Model) (events.SummaryUsage, error),
) (spent events.SummaryUsage, wrote bool, err error) {
	for _, m := range models {
		if !by.Allows(m.Name()) {
			continue
		}
		began := time.Now()
		usage, err := write(m)
		spent = sum(spent, usage)
		if onAttempt != nil {
			onAttempt(summarize.Attempt{Model: m.Name(), Usage: usage, Took: time.Since(began), Err: err})
		}
		if err == nil || ctx.Err() != nil {
			return spent, err == nil, ctx.Err()
		}
	}
	return spent, false, nil
}

func sum(a, b events.SummaryUsage) events.SummaryUsage {
	return events.SummaryUsage{Input: a.Input + b.Input, Output: a.Output + b.Output}
}

// shorterWait is the wait that ends first: that of what came before, or of an error
// that will pass within maxWait.
func shorterWait(waits *summarize.RetryAfterError, err error, maxWait time.Duration) *summarize.RetryAfterError {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || maxWait <= 0 || e.RetryAfter > maxWait {
		return waits
	}
	switch e.Kind {
	case model.RateLimited, model.Unavailable, model.Timeout, model.CircuitOpen:
	default:
		return waits
	}
	if waits != nil && waits.After <= e.RetryAfter {
		return waits
	}
	return &summarize.RetryAfterError{After: e.RetryAfter, Err: err}
}
