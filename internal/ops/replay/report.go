package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/request"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Report is the result of the sessions.
type Report struct {
	Sessions    []*SessionReport
	Turns       int
	Undelivered int             // compactions stored that the subscription did not get
	Unanswered  int             // sessions whose state no worker returned
	Earlier     int             // compactions of turns that were stored before this replay
	Latencies   []time.Duration // from a turn's publish to its session.compacted, sorted
	// Duplicates are turns whose message id the server had, of an earlier replay or of
	// another tenant. They were sent again under a random id.
	Duplicates int
}

// Summary is the report in figures, as one JSON object.
type Summary struct {
	Sessions         int         `json:"sessions"`
	Turns            int         `json:"turns"`
	Compactions      int         `json:"compactions"`
	TokensBefore     int64       `json:"tokens_before"`
	TokensAfter      int64       `json:"tokens_after"`
	InvalidHistories int         `json:"invalid_histories"`
	Undelivered      int         `json:"-"` // an error of its own, see Problem
	Rejected         int         `json:"-"`
	P50              float64     `json:"p50_ms"`
	P99              float64     `json:"p99_ms"`
	TokensSaved      int64       `json:"tokens_saved"`
	Cost             events.Cost `json:"cost,omitzero"`
	Summaries        int         `json:"summaries"` // compactions that the stage took part in
	WouldOverflow    int         `json:"would_overflow"`
	Repeated         int64       `json:"repeated_calls"` // whose results a compaction had taken out of view
	Duplicates       int         `json:"duplicates"`     // turns sent again under a random id, since the server had theirs
	Each             []Row       `json:"each"`
}

// Row is one session in figures.
type Row struct {
	Session     string               `json:"session"`
	Turns       int                  `json:"turns"`
	Messages    int                  `json:"messages"`
	Peak        int64                `json:"peak_tokens"` // 0 if no outcome has one
	Compactions int                  `json:"compactions"`
	Stages      map[events.Stage]int `json:"stages"`
	TokensSaved int64                `json:"tokens_saved"`
	Cost        events.Cost          `json:"cost,omitzero"`
	// Overflow is the turn with which the history would not have fit any more without
	// a compaction, an estimate from the published tokens; 0 is never.
	Overflow         int64         `json:"overflow_turn"`
	InvalidHistories int           `json:"invalid_histories"`
	Rejected         []events.Code `json:"rejected"`
	// Repeated counts calls that repeat one whose result a compaction had taken out of view.
	Repeated int64 `json:"repeated_calls"`
	// Missing counts what the recording lacks, by kind.
	Missing map[string]int `json:"missing,omitzero"`
}

// report waits for the workers and collects what they published.
func (r *run) report(ctx context.Context) (*Report, error) {
	rep := &Report{Sessions: r.seen, Duplicates: int(r.duplicates.Load())}
	for _, s := range r.seen {
		rep.Turns += s.Turns
	}
	if r.config.Undecided != nil && len(r.seen) > 0 {
		var stats events.StatsResponse
		in := events.StatsRequest{About: r.seen[0].address.About()}
		if err := request.SendOf(ctx, r.config.Conn, events.SubjectStats, in.Tenant, in, &stats); errors.Is(err, request.ErrNoWorker) {
			r.config.Undecided(err)
		}
	}
	if r.config.Received {
		return rep, r.awaitReceived(ctx, rep)
	}
	if err := r.tracker.decided(ctx, r.js, r.streams.Partitions); err != nil {
		return nil, err
	}
	causes := map[string]uint64{}
	first := slices.Min(append(slices.Collect(maps.Keys(r.tracker.sent)), r.tracker.last+1))
	err := readOutcomes(ctx, r.js, 1, r.index, func(s *SessionReport, body any) {
		b := s.note(body)
		if b == nil {
			return
		}
		if b.CausedBy.Seq < first {
			rep.Earlier++
		}
		if _, ours := r.tracker.sent[b.CausedBy.Seq]; ours {
			causes[b.ID] = b.CausedBy.Seq
		}
	})
	if err != nil {
		return nil, err
	}
	rep.Unanswered = r.requestStats(ctx)
	rep.Latencies, rep.Undelivered = r.tracker.delivered(ctx, causes)
	return rep, nil
}

// requestStats requests the state of each session. The first request without an answer
// ends it; what is left is counted.
func (r *run) requestStats(ctx context.Context) (unanswered int) {
	for i, s := range r.seen {
		var stats events.StatsResponse
		in := events.StatsRequest{About: s.address.About()}
		if err := request.SendOf(ctx, r.config.Conn, events.SubjectStats, in.Tenant, in, &stats); err != nil {
			return len(r.seen) - i
		}
		s.end(&stats)
	}
	return 0
}

// readOutcomes calls each with the outcomes of the sessions in index, from a sequence of
// OUTCOMES on.
func readOutcomes[S any](ctx context.Context, js jetstream.JetStream, from uint64, index map[events.Address]S, each func(S, any)) error {
	return stream.ReadStream(ctx, js, topology.OutcomesStream, events.OutcomesFilter, from, 0, func(m jetstream.Msg, _ uint64) error {
		at, err := events.ParseOutcome(m.Subject())
		if err != nil {
			return err
		}
		s, ours := index[at.Address]
		if !ours {
			return nil
		}
		body, err := events.DecodeOutcome(at.Kind, m.Data())
		if err == nil {
			each(s, body)
		}
		return err
	})
}

// Summary returns the figures of the report.
func (r *Report) Summary() Summary {
	s := Summary{
		Sessions: len(r.Sessions), Turns: r.Turns, Undelivered: r.Undelivered,
		Duplicates: r.Duplicates, P50: quantile(r.Latencies, 50), P99: quantile(r.Latencies, 99),
	}
	for _, sr := range r.Sessions {
		row := sr.row()
		s.Each = append(s.Each, row)
		s.Rejected += len(sr.Rejected)
		s.Compactions += row.Compactions
		s.InvalidHistories += row.InvalidHistories
		s.TokensSaved += row.TokensSaved
		s.Cost = s.Cost.Plus(row.Cost)
		s.Summaries += row.Stages[events.StageSummarize]
		if row.Overflow > 0 {
			s.WouldOverflow++
		}
		s.Repeated += sr.Repeated
		for _, g := range sr.Generations {
			s.TokensBefore += g.Before
			s.TokensAfter += g.After
		}
	}
	return s
}

func (s *SessionReport) row() Row {
	return Row{
		Session: s.Name, Turns: s.Turns, Messages: s.Messages, Peak: s.Peak(), Compactions: len(s.Generations), Stages: s.Stages(),
		TokensSaved: s.Saved(), Cost: s.Cost, Overflow: s.Overflow(), InvalidHistories: s.Invalid(), Rejected: s.Rejected, Repeated: s.Repeated,
		Missing: s.Missing,
	}
}

// Problem returns the defects that a report shows as one error, nil if there are none.
func (s Summary) Problem() error {
	var errs []error
	if s.InvalidHistories > 0 {
		errs = append(errs, fmt.Errorf("%d compacted histories are not valid for their provider", s.InvalidHistories))
	}
	if s.Undelivered > 0 {
		errs = append(errs, fmt.Errorf("%d stored compactions were not delivered", s.Undelivered))
	}
	return errors.Join(errs...)
}
