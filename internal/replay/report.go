package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/events"
	"compactd/internal/transcript"
)

// Report is what became of the sessions.
type Report struct {
	Sessions  []SessionReport
	Turns     int
	Unheard   int             // compactions stored that the subscription did not get
	Latencies []time.Duration // from a turn's publish to its session.compacted, sorted
}

// SessionReport is what became of one session.
type SessionReport struct {
	Name        string
	Turns       int
	Messages    int
	Generations []Generation
	Rejected    []events.Code
}

// Generation is one compaction.
type Generation struct {
	Number        int64
	Turn          int64 // up to which the history was compacted
	Stages        []events.Stage
	Before, After int64 // tokens
	Messages      int
	Violations    []events.Violation
}

// Summary is the report in figures, as one JSON object.
type Summary struct {
	Sessions         int     `json:"sessions"`
	Turns            int     `json:"turns"`
	Compactions      int     `json:"compactions"`
	TokensBefore     int64   `json:"tokens_before"`
	TokensAfter      int64   `json:"tokens_after"`
	InvalidHistories int     `json:"invalid_histories"`
	Unheard          int     `json:"-"` // an error of its own, see Problem
	Rejected         int     `json:"-"`
	P50              float64 `json:"p50_ms"`
	P99              float64 `json:"p99_ms"`
}

// report waits for the workers and collects what they told.
func (r *run) report(ctx context.Context, sessions []transcript.Session) (*Report, error) {
	settle, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := broker.AwaitCursor(settle, r.js, r.streams.Partitions, r.last); err != nil {
		return nil, fmt.Errorf("wait for the workers: %w; is one running?", err)
	}
	rep := &Report{Sessions: make([]SessionReport, len(sessions))}
	index := map[events.Address]*SessionReport{}
	for i, s := range sessions {
		sr := &rep.Sessions[i]
		sr.Name, sr.Turns = s.Name, len(s.Turns)
		for _, t := range s.Turns {
			sr.Messages += len(t.Messages)
		}
		rep.Turns += sr.Turns
		index[r.address(s)] = sr
	}
	causes, err := r.collect(ctx, index)
	if err != nil {
		return nil, err
	}
	rep.Latencies, rep.Unheard = r.latencies(ctx, causes)
	return rep, nil
}

// collect reads the outcomes of the sessions. It returns the causes of the
// compactions by the id of the outcome.
func (r *run) collect(ctx context.Context, index map[events.Address]*SessionReport) (map[string]uint64, error) {
	causes := map[string]uint64{}
	err := broker.ReadStream(ctx, r.js, broker.OutcomesStream, events.OutcomesFilter, 1, 0, func(m jetstream.Msg, _ uint64) error {
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
		switch b := body.(type) {
		case *events.Rejected:
			sr.Rejected = append(sr.Rejected, b.Code)
		case *events.Compacted:
			if b.Compacted {
				sr.Generations = append(sr.Generations, generation(b))
				causes[b.ID] = b.CausedBy.Seq
			}
		}
		return nil
	})
	return causes, err
}

func generation(b *events.Compacted) Generation {
	return Generation{
		Number: b.Generation, Turn: b.Through.Turn, Stages: b.StagesUsed, Before: b.TokensBefore, After: b.TokensAfter,
		Messages: len(b.Messages), Violations: events.Validate(b.Format, b.Messages),
	}
}

// latencies compares what was stored with what was heard. Compactions of turns
// that an earlier replay published are not counted.
func (r *run) latencies(ctx context.Context, causes map[string]uint64) (out []time.Duration, unheard int) {
	deadline, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	for {
		out, unheard = r.compare(causes)
		if unheard == 0 || deadline.Err() != nil {
			slices.Sort(out)
			return out, unheard
		}
		select {
		case <-deadline.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (r *run) compare(causes map[string]uint64) (out []time.Duration, unheard int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, seq := range causes {
		sent, ours := r.published[seq]
		heard, ok := r.heard[id]
		switch {
		case !ours:
		case !ok:
			unheard++
		default:
			out = append(out, heard.Sub(sent))
		}
	}
	return out, unheard
}

// Summary returns the figures of the report.
func (r *Report) Summary() Summary {
	s := Summary{
		Sessions: len(r.Sessions), Turns: r.Turns, Unheard: r.Unheard,
		P50: millis(r.percentile(50)), P99: millis(r.percentile(99)),
	}
	for _, sr := range r.Sessions {
		s.Rejected += len(sr.Rejected)
		for _, g := range sr.Generations {
			s.Compactions++
			s.TokensBefore += g.Before
			s.TokensAfter += g.After
			if len(g.Violations) > 0 {
				s.InvalidHistories++
			}
		}
	}
	return s
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (r *Report) percentile(p int) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(len(r.Latencies)*p/100, len(r.Latencies)-1)]
}

// maxQuietRows is how many sessions without a compaction the table names.
const maxQuietRows = 5

// WriteTable writes the report for people: a row for each generation.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SESSION\tMESSAGES\tGEN\tTURN\tTOKENS\tSTAGES\tHISTORY")
	quiet := 0
	for _, s := range r.Sessions {
		if len(s.Generations) == 0 {
			if quiet++; quiet <= maxQuietRows {
				fmt.Fprintf(t, "%s\t%d\t-\t%d\tfits\t-\t-\n", s.Name, s.Messages, s.Turns)
			}
			continue
		}
		name, messages := s.Name, fmt.Sprint(s.Messages)
		for _, g := range s.Generations {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d → %d\t%s\t%s\n", name, messages, g.Number, g.Turn, g.Before, g.After, join(g.Stages), verdict(g))
			name, messages = "", ""
		}
	}
	if quiet > maxQuietRows {
		fmt.Fprintf(t, "(and %d more that fit)\n", quiet-maxQuietRows)
	}
	s := r.Summary()
	fmt.Fprintf(t, "\n%d sessions, %d turns, %d compactions; invalid histories %d, rejected events %d, unheard outcomes %d\n",
		s.Sessions, s.Turns, s.Compactions, s.InvalidHistories, s.Rejected, s.Unheard)
	fmt.Fprintf(t, "turn to compacted event: p50 %.1f ms, p99 %.1f ms\n", s.P50, s.P99)
	return t.Flush()
}

func join(stages []events.Stage) string {
	s := make([]string, len(stages))
	for i, x := range stages {
		s[i] = string(x)
	}
	return strings.Join(s, ", ")
}

func verdict(g Generation) string {
	if len(g.Violations) > 0 {
		return fmt.Sprintf("INVALID: %s at message %d", g.Violations[0].Rule, g.Violations[0].Index)
	}
	return fmt.Sprintf("%d messages, valid", g.Messages)
}

// Problem is the error that a report amounts to, nil for none.
func (s Summary) Problem() error {
	var errs []error
	if s.InvalidHistories > 0 {
		errs = append(errs, fmt.Errorf("%d compacted histories are not valid for their provider", s.InvalidHistories))
	}
	if s.Unheard > 0 {
		errs = append(errs, fmt.Errorf("%d stored compactions were not heard", s.Unheard))
	}
	return errors.Join(errs...)
}
