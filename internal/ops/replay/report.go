package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Report is what became of the sessions.
type Report struct {
	Sessions    []*SessionReport
	Turns       int
	Undelivered int             // compactions stored that the subscription did not get
	Unasked     int             // sessions that no worker said how they stand
	Earlier     int             // compactions of turns that were stored before this replay
	Latencies   []time.Duration // from a turn's publish to its session.compacted, sorted
	// Duplicates are turns whose message id the server had, of an earlier replay or of
	// another tenant. They were sent again under a random id.
	Duplicates int
}

// Summary is the report in figures, as one JSON object.
type Summary struct {
	Sessions         int     `json:"sessions"`
	Turns            int     `json:"turns"`
	Compactions      int     `json:"compactions"`
	TokensBefore     int64   `json:"tokens_before"`
	TokensAfter      int64   `json:"tokens_after"`
	InvalidHistories int     `json:"invalid_histories"`
	Undelivered      int     `json:"-"` // an error of its own, see Problem
	Rejected         int     `json:"-"`
	P50              float64 `json:"p50_ms"`
	P99              float64 `json:"p99_ms"`
	TokensSaved      int64   `json:"tokens_saved"`
	Summaries        int     `json:"summaries"` // compactions that the stage took part in
	WouldOverflow    int     `json:"would_overflow"`
	Duplicates       int     `json:"duplicates"` // turns sent again under a random id, since the server had theirs
	Each             []Row   `json:"each"`
}

// Row is one session in figures.
type Row struct {
	Session     string               `json:"session"`
	Turns       int                  `json:"turns"`
	Messages    int                  `json:"messages"`
	Peak        int64                `json:"peak_tokens"` // 0 when no worker told
	Compactions int                  `json:"compactions"`
	Stages      map[events.Stage]int `json:"stages"`
	TokensSaved int64                `json:"tokens_saved"`
	// Overflow is the turn with which the history would not have fit any more if
	// nobody had compacted it, as far as the tokens told can say; 0 is never.
	Overflow         int64         `json:"overflow_turn"`
	InvalidHistories int           `json:"invalid_histories"`
	Rejected         []events.Code `json:"rejected"`
}

// report waits for the workers and collects what they told.
func (r *run) report(ctx context.Context) (*Report, error) {
	settle, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := commit.AwaitCursor(settle, r.js, r.streams.Partitions, r.last); err != nil {
		return nil, fmt.Errorf("wait for the workers: %w; is one running?", err)
	}
	rep := &Report{Sessions: r.seen, Duplicates: r.duplicates}
	index := map[events.Address]*SessionReport{}
	for _, s := range r.seen {
		rep.Turns += s.Turns
		index[s.address] = s
	}
	causes, err := r.collect(ctx, index)
	if err != nil {
		return nil, err
	}
	rep.Unasked = r.ask(ctx)
	rep.Latencies, rep.Undelivered = r.latencies(ctx, causes)
	rep.Earlier = r.earlier(causes)
	return rep, nil
}

// ask asks how the sessions stand. From the first on that nobody says it of, none
// is asked: they are counted.
func (r *run) ask(ctx context.Context) (unasked int) {
	for i, s := range r.seen {
		var stats events.StatsResponse
		in := events.StatsRequest{V: events.Version, Tenant: s.address.Tenant, Session: s.address.Session}
		if err := Ask(ctx, r.config.Conn, events.OfTenant(events.SubjectStats, in.Tenant), in, &stats); err != nil {
			return len(r.seen) - i
		}
		s.end(&stats)
	}
	return 0
}

// collect reads the outcomes of the sessions. It returns the causes of the
// compactions by the id of the outcome.
func (r *run) collect(ctx context.Context, index map[events.Address]*SessionReport) (map[string]uint64, error) {
	causes := map[string]uint64{}
	err := stream.ReadStream(ctx, r.js, topology.OutcomesStream, events.OutcomesFilter, 1, 0, func(m jetstream.Msg, _ uint64) error {
		at, err := events.ParseOutcome(m.Subject())
		if err != nil {
			return err
		}
		sr := index[at.Address]
		if sr == nil {
			return nil
		}
		body, err := events.DecodeOutcome(at.Kind, m.Data())
		if err != nil {
			return err
		}
		if b := sr.note(body); b != nil {
			causes[b.ID] = b.CausedBy.Seq
		}
		return nil
	})
	return causes, err
}

// earlier counts the compactions whose cause was stored before the first turn of
// this replay was.
func (r *run) earlier(causes map[string]uint64) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.last + 1 // all were published before
	for seq := range r.published {
		first = min(first, seq)
	}
	for _, seq := range causes {
		if seq < first {
			n++
		}
	}
	return n
}

// latencies compares what was stored with what was heard. Compactions of turns
// that an earlier replay published are not counted.
func (r *run) latencies(ctx context.Context, causes map[string]uint64) (out []time.Duration, undelivered int) {
	deadline, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	for {
		out, undelivered = r.compare(causes)
		if undelivered == 0 || deadline.Err() != nil {
			slices.Sort(out)
			return out, undelivered
		}
		select {
		case <-deadline.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (r *run) compare(causes map[string]uint64) (out []time.Duration, undelivered int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, seq := range causes {
		sent, ours := r.published[seq]
		heard, ok := r.heard[id]
		switch {
		case !ours:
		case !ok:
			undelivered++
		default:
			out = append(out, heard.Sub(sent))
		}
	}
	return out, undelivered
}

// Summary returns the figures of the report.
func (r *Report) Summary() Summary {
	s := Summary{
		Sessions: len(r.Sessions), Turns: r.Turns, Undelivered: r.Undelivered,
		Duplicates: r.Duplicates, P50: millis(Percentile(r.Latencies, 50)), P99: millis(Percentile(r.Latencies, 99)),
	}
	for _, sr := range r.Sessions {
		row := sr.row()
		s.Each = append(s.Each, row)
		s.Rejected += len(sr.Rejected)
		s.Compactions += row.Compactions
		s.InvalidHistories += row.InvalidHistories
		s.TokensSaved += row.TokensSaved
		s.Summaries += row.Stages[events.StageSummarize]
		if row.Overflow > 0 {
			s.WouldOverflow++
		}
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
		TokensSaved: s.Saved(), Overflow: s.Overflow(), InvalidHistories: s.Invalid(), Rejected: s.Rejected,
	}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Percentile returns the value that p of a hundred are below; 0 of none. The
// values are sorted.
func Percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

// Problem is the error that a report amounts to, nil for none.
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
