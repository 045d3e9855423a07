package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/ops/replay"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// Report is what the agents saw.
type Report struct {
	Sessions int
	Turns    int // acknowledged
	Bytes    int64
	Elapsed  time.Duration   // of the publishing
	Acks     []time.Duration // from a turn's publish to its acknowledgement, sorted

	Compactions, Levels int             // stored
	TokensSaved         int64           // by the compactions
	Outcomes            []time.Duration // from a turn's publish to the session.compacted or session.budget that it led to, sorted
	Applied             int             // compactions that agents took over; a later one replaces an earlier one
	Invalid             int             // histories that the provider would refuse
	Rejected            int             // events
	Undelivered         int             // outcomes that were stored and not delivered
	Errors              []string        // why agents ended early
}

// collect counts what was stored from a sequence of OUTCOMES on, and waits until all
// of it was heard.
func (f *fleet) collect(ctx context.Context, from uint64) (*Report, error) {
	rep := &f.report // all agents have ended; f.heard alone still grows
	rep.Sessions = len(f.agents)
	var ids []string
	err := stream.ReadStream(ctx, f.js, topology.OutcomesStream, events.OutcomesFilter, from, 0, func(m jetstream.Msg, _ uint64) error {
		at, err := events.ParseOutcome(m.Subject())
		if err != nil || f.agents[at.Address] == nil {
			return err
		}
		body, err := events.DecodeOutcome(at.Kind, m.Data())
		if err != nil {
			return err
		}
		if id := rep.note(body); id != "" {
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.listen(ctx, ids)
	slices.Sort(rep.Acks)
	slices.Sort(rep.Outcomes)
	return rep, nil
}

// note counts an outcome, and returns the id of one that is to be heard.
func (r *Report) note(body any) (id string) {
	switch b := body.(type) {
	case *events.Rejected:
		r.Rejected++
	case *events.BudgetChanged:
		r.Levels++
		return b.ID
	case *events.Compacted:
		if b.Compacted {
			r.Compactions++
			r.TokensSaved += b.TokensSaved
			if len(events.Validate(b.Format, b.Messages)) > 0 {
				r.Invalid++
			}
		}
		return b.ID
	}
	return ""
}

// listen waits until all was heard, or nothing more can be expected.
func (f *fleet) listen(ctx context.Context, ids []string) {
	deadline, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	for f.compare(ids) > 0 && deadline.Err() == nil {
		select {
		case <-deadline.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// compare sets what depends on what was heard. An outcome of a summary has no turn
// to be measured from.
func (f *fleet) compare(ids []string) (undelivered int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report.Outcomes, f.report.Undelivered = nil, 0
	for _, id := range ids {
		t, ok := f.heard[id]
		began, turn := f.sent[t.cause]
		switch {
		case !ok:
			f.report.Undelivered++
		case turn:
			f.report.Outcomes = append(f.report.Outcomes, t.at.Sub(began))
		}
	}
	return f.report.Undelivered
}

// Summary is the report in figures, as one JSON object.
type Summary struct {
	Sessions         int      `json:"sessions"`
	Turns            int      `json:"turns"`
	TurnsPerSecond   float64  `json:"turns_per_s"`
	Bytes            int64    `json:"bytes"`
	AckP50           float64  `json:"ack_p50_ms"`
	AckP99           float64  `json:"ack_p99_ms"`
	Compactions      int      `json:"compactions"`
	Levels           int      `json:"levels"`
	TokensSaved      int64    `json:"tokens_saved"`
	Applied          int      `json:"applied"`
	OutcomeP50       float64  `json:"outcome_p50_ms"`
	OutcomeP99       float64  `json:"outcome_p99_ms"`
	InvalidHistories int      `json:"invalid_histories"`
	Rejected         int      `json:"rejected"`
	Undelivered      int      `json:"undelivered"`
	Errors           []string `json:"errors"`
}

// Summary returns the figures of the report.
func (r *Report) Summary() Summary {
	s := Summary{
		Sessions: r.Sessions, Turns: r.Turns, Bytes: r.Bytes, AckP50: quantile(r.Acks, 50), AckP99: quantile(r.Acks, 99),
		Compactions: r.Compactions, Levels: r.Levels, TokensSaved: r.TokensSaved, Applied: r.Applied,
		OutcomeP50: quantile(r.Outcomes, 50), OutcomeP99: quantile(r.Outcomes, 99),
		InvalidHistories: r.Invalid, Rejected: r.Rejected, Undelivered: r.Undelivered, Errors: r.Errors,
	}
	if r.Elapsed > 0 {
		s.TurnsPerSecond = float64(int64(float64(r.Turns)/r.Elapsed.Seconds()*10)) / 10
	}
	return s
}

// quantile is in milliseconds.
func quantile(sorted []time.Duration, p int) float64 {
	return float64(replay.Percentile(sorted, p).Microseconds()) / 1000
}

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	s := r.Summary()
	t := term.NewTable(w, term.Column{}, term.Column{Wrap: true, Min: 20})
	for _, row := range []struct {
		name  string
		value string
	}{
		{"sessions", fmt.Sprint(s.Sessions)},
		{"turns acknowledged", fmt.Sprintf("%d, %.1f a second, %s", s.Turns, s.TurnsPerSecond, units.Bytes(s.Bytes))},
		{"acknowledgement", latencies(len(r.Acks), s.AckP50, s.AckP99)},
		{"compactions", fmt.Sprintf("%d, %d tokens saved, %d applied", s.Compactions, s.TokensSaved, s.Applied)},
		{"levels told", fmt.Sprint(s.Levels)},
		{"turn to outcome", latencies(len(r.Outcomes), s.OutcomeP50, s.OutcomeP99)},
		{"invalid histories", fmt.Sprint(s.InvalidHistories)},
		{"rejected events", fmt.Sprint(s.Rejected)},
		{"undelivered outcomes", fmt.Sprint(s.Undelivered)},
		{"errors", fmt.Sprint(len(s.Errors))},
	} {
		t.Row(row.name, row.value)
	}
	return t.Flush()
}

// latencies says two quantiles of n measurements, in milliseconds.
func latencies(n int, p50, p99 float64) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", p50, p99)
}

// Problem is the error that a report amounts to, nil for none.
func (s Summary) Problem() error {
	var errs []error
	if s.InvalidHistories > 0 {
		errs = append(errs, fmt.Errorf("%d histories are not valid for their provider", s.InvalidHistories))
	}
	if s.Undelivered > 0 {
		errs = append(errs, fmt.Errorf("%d stored outcomes were not delivered", s.Undelivered))
	}
	if len(s.Errors) > 0 {
		errs = append(errs, fmt.Errorf("%d agents ended early, the first with: %s", len(s.Errors), s.Errors[0]))
	}
	return errors.Join(errs...)
}
