package service

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/partition"
)

const (
	// awaitSlice limits the wait of one request to another worker, which may crash meanwhile.
	awaitSlice = 2 * time.Second
	// unservedPause is the pause between two tries to reach the worker that serves the partition.
	unservedPause = 20 * time.Millisecond
)

// errTurnPending is the answer to a request whose turn was not decided in time.
var errTurnPending = events.NewInvalid(events.CodeTurnPending, "", "the turn was not decided in time")

// awaitAndAnswer answers a request once the event that it waits for is decided. This worker
// answers, or the one that serves the session by then.
func (s *Service) awaitAndAnswer(ctx context.Context, o *Operation, c *call, alone bool) (out any, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.wait.Limit()+AnswerTimeout, ErrBusy)
	defer cancel()
	defer context.AfterFunc(s.answering, cancel)()
	end := time.Now().Add(c.wait.Limit())
	err = retry.Every(unservedPause).Do(ctx, nil, func() error {
		out, err = s.following(ctx, c, alone, func() (any, error) {
			return s.tryAwaiting(ctx, o, c, c.wait.Within(max(time.Until(end), 0)), alone)
		})
		code := Refusal(err).Code
		return retry.When(!alone && time.Until(end) > 0 && (code == events.CodeUnavailable || code == events.CodeTurnPending), err)
	})
	return out, orEnded(ctx, err)
}

// tryAwaiting waits and answers here, or passes the request to the worker that serves the
// partition.
func (s *Service) tryAwaiting(ctx context.Context, o *Operation, c *call, w events.Await, alone bool) (any, error) {
	elsewhere := s.elsewhere(c)
	switch {
	case elsewhere && alone:
		return nil, ErrNotServed
	case elsewhere:
		return s.awaitElsewhere(ctx, o, c, w)
	}
	if err := s.awaitDecided(ctx, events.Address{Tenant: c.tenant, Session: c.session}, w); err != nil {
		return nil, err
	}
	return s.run(ctx, o, c)
}

// awaitElsewhere passes a request to the worker that serves the partition. That worker may crash during the wait, so a
// request that waits has little time. A request whose answer may take longer follows one for stats, which waits.
func (s *Service) awaitElsewhere(ctx context.Context, o *Operation, c *call, w events.Await) (any, error) {
	if o.slow || o.Body {
		stats := callOf(s, &events.StatsRequest{About: events.Address{Tenant: c.tenant, Session: c.session}.About()}, (*Service).stats)
		stats.partition = c.partition
		if _, err := s.awaitElsewhere(ctx, s.find("stats"), stats, w); err != nil {
			return nil, err
		}
		w = w.Within(0)
	} else {
		limited, cancel := context.WithTimeoutCause(ctx, awaitSlice+time.Second, ErrBusy)
		defer cancel()
		ctx, w = limited, w.Within(min(w.Limit(), awaitSlice))
	}
	request, err := c.payload()
	if err == nil {
		request, err = events.WithAwait(request, w)
	}
	if err != nil {
		return nil, err
	}
	out, err := s.ownerAnswer(ctx, o, c, request)
	return counted(ctx, o, out, err)
}

// awaitDecided waits until an event of a session was decided by this worker. The wait holds no processor.
func (s *Service) awaitDecided(ctx context.Context, a events.Address, w events.Await) error {
	return limit.Of(ctx).Idle(ctx, func() error {
		timer := time.NewTimer(w.Limit())
		defer timer.Stop()
		for {
			p := s.config.Partitions.At(s.config.Partitions.Of(a))
			if p == nil {
				return ErrNotServed
			}
			done, err := s.awaitMove(ctx, p, a, w, timer.C)
			if done || err != nil {
				return err
			}
		}
	})
}

// awaitMove reports whether the event was decided; if not, it returns with the next
// event of the session.
func (s *Service) awaitMove(ctx context.Context, p *partition.Partition, a events.Address, w events.Await, late <-chan time.Time) (bool, error) {
	moved, drop := p.Await(a) // before the ledger is read, so that no event is missed in between
	defer drop()
	var decided bool
	var last events.Through
	_, at, err := s.inspect(a, func(l *compaction.Ledger) {
		decided = w.Turn > 0 && l.Received(w.Turn)
		last = l.Through()
	})
	switch {
	case err != nil:
		return false, err
	case w.Seq > 0:
		decided = uint64(at) >= w.Seq
	case !decided:
		if decided, err = s.refusedBefore(ctx, p, a, w.Turn, at, last); err != nil {
			return false, err
		}
	}
	if decided {
		return true, nil
	}
	gone := time.NewTicker(10 * unservedPause) // the partition may be handed over, or the session move
	defer gone.Stop()
	for {
		select {
		case <-moved:
			return false, nil
		case <-gone.C:
			if s.config.Partitions.At(s.config.Partitions.Of(a)) != p {
				return false, nil
			}
		case <-late:
			return false, errTurnPending
		case <-ctx.Done():
			return false, whyEnded(ctx)
		}
	}
}

// refusedBefore reports whether the turn of a number was refused after the last accepted turn. It
// reads the stored refusals.
func (s *Service) refusedBefore(ctx context.Context, p *partition.Partition, a events.Address, turn int64, at measure.Seq, last events.Through) (bool, error) {
	if err := s.awaitCommitted(ctx, p, a, at); err != nil {
		return false, err
	}
	return Reading(ctx, func() (bool, error) { return s.refusedSince(ctx, a, turn, at, last) })
}

func (s *Service) refusedSince(ctx context.Context, a events.Address, turn int64, at measure.Seq, last events.Through) (refused bool, err error) {
	nc, path := s.config.Answers, s.config.Partitions.Table().Path(a)
	subjects := events.OutcomesIn(path, events.KindRejected, a)
	m, err := stream.LastOf(ctx, nc, topology.OutcomesStream, subjects...)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return false, nil
	case err != nil:
		return false, orEnded(ctx, err)
	}
	if r := rejectionIn(m.Data); r == nil || r.Seq <= last.Seq {
		return false, nil // the usual case: no refusal since
	}
	err = stream.ReadSubjects(ctx, nc, topology.OutcomesStream, subjects, 1, func(m stream.LogMessage) error {
		r := rejectionIn(m.Data)
		if refused || r == nil || r.Seq <= last.Seq || r.Kind != events.KindTurn || !events.Codes[r.Code].Rejects {
			return nil
		}
		number, err := s.numberOf(ctx, r.Seq)
		refused = cmp.Or(number, last.Turn+1) == turn
		return err
	})
	if err != nil || !refused {
		return false, orEnded(ctx, err)
	}
	newest, err := stream.LastOf(ctx, nc, topology.LogStream, events.LoggedIn(path, events.KindTurn, a)...)
	if err != nil {
		return false, orEnded(ctx, err)
	}
	return newest.Seq <= uint64(at), nil // otherwise a corrected turn with the number may follow
}

// rejectionIn decodes a rejection, nil for a version that this program cannot read.
func rejectionIn(data []byte) *events.Rejected {
	body, err := events.DecodeOutcome(events.KindRejected, data)
	r, ok := body.(*events.Rejected)
	if err != nil || !ok {
		return nil
	}
	return r
}

// numberOf returns the number of a turn in the log; 0 for a turn without a number, -1 for a turn that
// cannot be read or is gone.
func (s *Service) numberOf(ctx context.Context, seq uint64) (int64, error) {
	stored, err := stream.GetLog(ctx, s.config.Answers, []uint64{seq})
	if _, gone := errors.AsType[*stream.GoneError](err); gone || err == nil && len(stored) == 0 {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	op := limit.Of(ctx)
	if err := op.ComputeOver(ctx, limit.Weight(stored[0].Data)); err != nil {
		return 0, err
	}
	defer op.Rest()                           // the next one is waited for
	t, _ := events.DecodeTurn(stored[0].Data) // returns what it could read beside the error
	if t == nil {
		return -1, nil
	}
	return cmp.Or(t.ReplacesFrom, t.Number), nil
}
