package summarize

import (
	"context"
	"errors"
	"time"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
)

// narrativeRoom is the least room for which a model is asked, in units: ten
// headings take a good part of it.
const narrativeRoom = 1_500

// Narrator lets models write summaries, and has the embedded summarizer for when
// none of them does. The record beside the text, the user's first request and
// rules are made by code, whichever writes.
type Narrator struct {
	models    []model.Model
	attempted func(Attempt)
}

// Attempt is what came of asking one model.
type Attempt struct {
	Model string // [model.Model.Name]
	Usage events.SummaryUsage
	Err   error // an [*Unusable], a [*model.Error], or that of the context; nil for a summary
}

// NewNarrator returns a summarizer that asks the models in their order. attempted
// is told of each attempt, from the goroutine of Summarize; nil for nobody.
func NewNarrator(models []model.Model, attempted func(Attempt)) *Narrator {
	if attempted == nil {
		attempted = func(Attempt) {}
	}
	return &Narrator{models, attempted}
}

// Later says that every model is busy or away for now, and that the caller has
// the patience to wait ([Input.Patience]). It holds the error of the last attempt.
type Later struct {
	After time.Duration       // what a provider asked for; 0 when none said
	Usage events.SummaryUsage // spent all the same
	Err   error
}

func (e *Later) Error() string { return "try later: " + e.Err.Error() }

// Unwrap returns the error of the last attempt.
func (e *Later) Unwrap() error { return e.Err }

// Summarize returns a summary of the first model whose answer is usable, else of
// the embedded summarizer. Usage is the sum over all attempts. Its errors are
// those of [Extractive.Summarize], and [*Later].
func (n *Narrator) Summarize(ctx context.Context, in Input) (*events.Summary, error) {
	in, err := legible(ctx, in)
	if err != nil {
		return nil, err
	}
	t := newNarration(in)
	if t.digest.empty() {
		return nil, ErrNothing
	}
	models := n.models
	if Room(in.MaxUnits, nil) < narrativeRoom {
		models = nil
	}
	var spent events.SummaryUsage
	var waits *Later
	for _, m := range models {
		s, usage, err := t.ask(ctx, m)
		spent = sum(spent, usage)
		in.tell(n.attempted, Attempt{Model: m.Name(), Usage: usage, Err: err})
		if err == nil {
			s.Usage = spent
			return sealed(s), nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		waits = earlier(waits, err, in.Patience)
	}
	if waits != nil {
		waits.Usage = spent
		return nil, waits
	}
	s, err := extract(t.digest, in.max())
	if err != nil {
		return nil, err
	}
	s.Usage = spent
	return sealed(s), nil
}

// tell passes an attempt on to those of the summarizer and of the caller.
func (in *Input) tell(all func(Attempt), a Attempt) {
	all(a)
	if in.Attempted != nil {
		in.Attempted(a)
	}
}

func sum(a, b events.SummaryUsage) events.SummaryUsage {
	return events.SummaryUsage{Input: a.Input + b.Input, Output: a.Output + b.Output}
}

// earlier is the wait that ends first: that of what came before, or of an error
// that will pass within patience.
func earlier(waits *Later, err error, patience time.Duration) *Later {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || patience <= 0 || e.RetryAfter > patience {
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
	return &Later{After: e.RetryAfter, Err: err}
}
