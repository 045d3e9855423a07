package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
)

// clockMargin is the largest difference between the clocks of servers that store an event and its
// outcome.
const clockMargin = time.Minute

// outcome states what became of an event that was decided.
func (s *Service) outcome(ctx context.Context, in *events.OutcomeRequest) (*events.OutcomeResponse, error) {
	a := in.Address()
	out := &events.OutcomeResponse{V: events.Version, Seq: in.Seq, Accepted: true}
	p, at, err := s.inspect(a, func(l *compaction.Ledger) { out.Generation, out.Through = l.Generation(), l.Through() })
	if err != nil {
		return nil, err
	}
	if uint64(at) < in.Seq {
		return nil, errTurnPending
	}
	if err := s.awaitCommitted(ctx, p, a, at); err != nil {
		return nil, err
	}
	if out.Through.Seq == in.Seq { // the usual case: the last turn that was taken
		out.Kind = events.KindTurn
		return out, nil
	}
	return Reading(ctx, func() (*events.OutcomeResponse, error) { return out, s.readOutcome(ctx, a, out) })
}

// effectPauses are the pauses between two reads of a result whose effect is not done: an erasure, or a compaction that
// waits for a summary.
var effectPauses = retry.Pauses{First: 20 * time.Millisecond, Last: 100 * time.Millisecond}

// awaitEffect calls read until the effect of an event is done, once more at the end of the wait, or until it fails.
// It holds no processor meanwhile.
func awaitEffect(ctx context.Context, wait time.Duration, read func(left time.Duration) (done bool, err error)) error {
	until := time.Now().Add(wait)
	return limit.Of(ctx).Idle(ctx, func() error {
		return effectPauses.Until(ctx, func() (bool, error) {
			left := max(time.Until(until), 0)
			done, err := read(left)
			return done || left == 0, err
		})
	})
}

// ResultOf waits until an event of a session that this worker serves is decided, and a compaction that it requested
// is done. Once the wait timed out, the result is without the compaction; error turn_pending: the event is undecided.
// The caller has a place for its wait. [Service.Outcome] takes another one: in a worker with 4,055 such waits, none
// would get it.
func (s *Service) ResultOf(ctx context.Context, in *events.OutcomeRequest) (out *events.OutcomeResponse, err error) {
	w, a := in.Awaited(), in.Address()
	err = awaitEffect(ctx, w.Limit(), func(left time.Duration) (bool, error) {
		if err := s.awaitDecided(ctx, a, w.Within(left)); err != nil {
			return false, err
		}
		out, err = s.outcome(ctx, in)
		return err == nil && !unfinished(out), err
	})
	return out, orEnded(ctx, err)
}

// unfinished reports whether a result lacks the compaction that its event requested.
func unfinished(out *events.OutcomeResponse) bool {
	return compacts(out.Kind) && out.Accepted && out.Compaction == nil
}

// compacts reports whether an event requests a compaction.
func compacts(k events.Kind) bool {
	return k == events.KindOverflow || k == events.KindCompact || k == events.KindRewind
}

// readOutcome adds the stored outcome of an event.
func (s *Service) readOutcome(ctx context.Context, a events.Address, out *events.OutcomeResponse) error {
	e, err := s.eventAt(ctx, a, out.Seq)
	if err != nil {
		return err
	}
	out.Kind = e.kind
	body, _, err := s.answerTo(ctx, events.KindRejected, a, e)
	if err != nil {
		return err
	}
	if r, ok := body.(*events.Rejected); ok {
		out.Accepted = !events.Codes[r.Code].Rejects
		out.Code, out.Message, out.Hint, out.Expected = r.Code, r.Message, r.Hint, r.Expected
		return nil
	}
	if e.kind == events.KindTurn || e.kind == events.KindEnd {
		return nil
	}
	body, stored, err := s.answerTo(ctx, events.KindCompacted, a, e)
	if c, ok := body.(*events.Compacted); ok {
		entry := c.Entry(stored.UnixMilli())
		out.Compaction = &entry
	}
	return err
}

// published is an event of the log.
type published struct {
	events.Cause
	kind events.Kind
	time time.Time
}

// eventAt returns the event of a session at a sequence.
func (s *Service) eventAt(ctx context.Context, a events.Address, seq uint64) (published, error) {
	stored, err := stream.GetLog(ctx, s.config.Answers, []uint64{seq})
	if err != nil {
		return published{}, orEnded(ctx, err)
	}
	at, err := events.ParseLog(stored[0].Subject)
	if err != nil || at.Address != a {
		return published{}, events.NewInvalid(events.CodeUnknownTurn, "seq", "is of no event of the session")
	}
	return published{events.CauseOf(seq, stored[0].Data), at.Kind, stored[0].Time}, nil
}

// answerTo returns the outcome of a kind that an event caused, and when it was stored; nil for
// none. It is mostly the newest outcome.
func (s *Service) answerTo(ctx context.Context, k events.Kind, a events.Address, e published) (body any, stored time.Time, err error) {
	nc, subjects := s.config.Answers, events.OutcomesIn(s.config.Partitions.Table().Path(a), k, a)
	answers := func(m stream.LogMessage) bool {
		b, err := events.DecodeOutcome(k, m.Data)
		if err != nil || !events.Answers(b).Is(e.Cause) { // or of a version that this one cannot read
			return false
		}
		body, stored = b, m.Time
		return true
	}
	m, err := stream.LastOf(ctx, nc, topology.OutcomesStream, subjects...)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, stored, nil
	case err != nil:
		return nil, stored, orEnded(ctx, err)
	case m.Time.Before(e.time.Add(-clockMargin)) || answers(m):
		return body, stored, nil
	}
	before, err := stream.LastUntil(ctx, s.config.JS, topology.OutcomesStream, e.time.Add(-clockMargin))
	if err != nil {
		return nil, stored, orEnded(ctx, fmt.Errorf("find outcomes: %w", err))
	}
	err = stream.ReadSubjects(ctx, nc, topology.OutcomesStream, subjects, before+1, func(m stream.LogMessage) error {
		if answers(m) {
			return stream.ErrEnd
		}
		return nil
	})
	return body, stored, orEnded(ctx, err)
}
