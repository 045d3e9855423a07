package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/validate"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// LoadReport has the observations of the agents, in figures.
type LoadReport struct {
	Sessions         int      `json:"sessions"`
	Turns            int      `json:"turns"` // acknowledged
	TurnsPerSecond   float64  `json:"turns_per_s"`
	Bytes            int64    `json:"bytes"`
	AckP50           float64  `json:"ack_p50_ms"` // from a turn's publish to its acknowledgement
	AckP99           float64  `json:"ack_p99_ms"`
	Compactions      int      `json:"compactions"` // stored
	Levels           int      `json:"levels"`
	TokensSaved      int64    `json:"tokens_saved"`   // by the compactions
	Applied          int      `json:"applied"`        // compactions that agents took over; a later one replaces an earlier one
	OutcomeP50       float64  `json:"outcome_p50_ms"` // from a turn's publish to the session.compacted or session.budget that it led to
	OutcomeP99       float64  `json:"outcome_p99_ms"`
	InvalidHistories int      `json:"invalid_histories"` // that the provider would refuse
	Rejected         int      `json:"rejected"`          // events
	Undelivered      int      `json:"undelivered"`       // outcomes that were stored and not delivered
	Errors           []string `json:"errors"`            // why agents ended early

	acks, outcomes []time.Duration // sorted, once it is collected
}

// collect counts what was stored from a sequence of OUTCOMES on, and waits until all
// of it was delivered.
func (f *fleet) collect(ctx context.Context, from uint64) (*LoadReport, error) {
	rep := &f.report // all agents have ended
	rep.Sessions = len(f.agents)
	causes := map[string]uint64{}
	err := readOutcomes(ctx, f.js, from, f.agents, func(_ *agent, body any) {
		if id, cause := rep.note(body); id != "" {
			causes[id] = cause
		}
	})
	if err != nil {
		return nil, err
	}
	rep.outcomes, rep.Undelivered = f.tracker.delivered(ctx, causes)
	for _, a := range f.agents {
		f.apply(a) // compactions after its last turn
	}
	slices.Sort(rep.acks)
	rep.AckP50, rep.AckP99 = quantile(rep.acks, 50), quantile(rep.acks, 99)
	rep.OutcomeP50, rep.OutcomeP99 = quantile(rep.outcomes, 50), quantile(rep.outcomes, 99)
	return rep, nil
}

// note counts an outcome, and returns the id and the cause of one that is published.
func (r *LoadReport) note(body any) (id string, cause uint64) {
	switch b := body.(type) {
	case *events.Rejected:
		r.Rejected++
	case *events.BudgetChanged:
		r.Levels++
		return b.ID, b.CausedBy.Seq
	case *events.Compacted:
		if b.Compacted {
			r.Compactions++
			r.TokensSaved += b.TokensSaved
			if len(validate.Messages(b.Format, b.Messages)) > 0 {
				r.InvalidHistories++
			}
		}
		return b.ID, b.CausedBy.Seq
	}
	return "", 0
}

// WriteTable writes the report for people.
func (r *LoadReport) WriteTable(w io.Writer) error {
	return term.Pairs(w,
		"sessions", r.Sessions,
		"turns acknowledged", fmt.Sprintf("%d, %.1f a second, %s", r.Turns, r.TurnsPerSecond, units.Bytes(r.Bytes)),
		"acknowledgement", latencies(len(r.acks), r.AckP50, r.AckP99),
		"compactions", fmt.Sprintf("%d, %d tokens saved, %d applied", r.Compactions, r.TokensSaved, r.Applied),
		"levels published", r.Levels,
		"turn to outcome", latencies(len(r.outcomes), r.OutcomeP50, r.OutcomeP99),
		"invalid histories", r.InvalidHistories,
		"rejected events", r.Rejected,
		"undelivered outcomes", r.Undelivered,
		"errors", len(r.Errors))
}

// latencies formats two quantiles of n measurements, in milliseconds.
func latencies(n int, p50, p99 float64) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", p50, p99)
}

// Problem is the error that a report amounts to, nil for none.
func (r *LoadReport) Problem() error {
	var errs []error
	if r.InvalidHistories > 0 {
		errs = append(errs, fmt.Errorf("%d histories are not valid for their provider", r.InvalidHistories))
	}
	if r.Undelivered > 0 {
		errs = append(errs, fmt.Errorf("%d stored outcomes were not delivered", r.Undelivered))
	}
	if len(r.Errors) > 0 {
		errs = append(errs, fmt.Errorf("%d agents ended early, the first with: %s", len(r.Errors), r.Errors[0]))
	}
	return errors.Join(errs...)
}
