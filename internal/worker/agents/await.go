package agents

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/worker/query"
)

// answerPause is how often a compaction is looked for that waits for a summary.
const answerPause = 100 * time.Millisecond

// await waits until an event is decided, and answered where it is to be. Its error is a
// turn_pending when the time is over.
func (e *Edge) await(ctx context.Context, s *query.Service, a events.Address, v verb, event *events.EventResponse, until time.Time) error {
	var out *events.OutcomeResponse
	err := retry.Every(answerPause).Do(ctx, nil, func() (err error) {
		wait := max(time.Until(until), 0).Milliseconds()
		if out, err = s.Outcome(ctx, &events.OutcomeRequest{Tenant: a.Tenant, Session: a.Session, Seq: event.Seq, WaitMS: &wait}); err != nil {
			return retry.Final(err)
		}
		if v.answers && out.Accepted && out.Compaction == nil && time.Now().Before(until) {
			return errNoAnswer
		}
		if v.kind != events.KindForget || !out.Accepted {
			return nil
		}
		if event.Erased, err = e.erased(ctx, a, event.Seq); err != nil || event.Erased == nil && time.Now().After(until) {
			return retry.Final(cmp.Or(err, error(errNoAnswer)))
		}
		if event.Erased == nil {
			return errNoAnswer
		}
		return nil
	})
	if err != nil {
		return err
	}
	event.Decided, event.Accepted = true, out.Accepted
	event.Code, event.Message, event.Hint, event.Expected = out.Code, out.Message, out.Hint, out.Expected
	event.Generation, event.Through, event.Compaction = out.Generation, out.Through, out.Compaction
	if c := out.Compaction; c != nil && c.Code == events.CodeBudgetExceeded {
		info := events.Codes[c.Code]
		event.Code, event.Message, event.Hint, event.Retry = c.Code, info.Meaning, info.Hint, c.Retry
	}
	if c := out.Compaction; v.answers && c != nil && (c.Compacted || c.Code == events.CodeNewerGeneration) {
		event.Context, err = e.historyOf(ctx, s, a, until)
	}
	return err
}

// errNoAnswer: the event is decided, and what it leads to is not done.
var errNoAnswer = events.NewInvalid(events.CodeTurnPending, "", "what the event leads to is not done yet")

// erased is what an erasure has done that was requested at a sequence, or a later one; nil
// while it is under way.
func (e *Edge) erased(ctx context.Context, a events.Address, seq uint64) (*events.Erased, error) {
	subject := events.Outcome(events.PartitionOf(a, e.config.Partitions), events.KindErased, a)
	m, err := query.Reading(ctx, func() (stream.LogMessage, error) {
		return stream.LastOf(ctx, e.config.Read, topology.OutcomesStream, subject)
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil //nolint:nilnil // it is under way
	}
	if err != nil {
		return nil, err
	}
	body, err := events.DecodeOutcome(events.KindErased, m.Data)
	if done, ok := body.(*events.Erased); ok && err == nil && done.Seq >= seq {
		return done, nil
	}
	return nil, nil //nolint:nilnil // it is of an earlier one
}

// historyOf is the first page of a session's history; its field pages counts all. It is nil where
// the tenant got more of them than it may within the time.
func (e *Edge) historyOf(ctx context.Context, s *query.Service, a events.Address, until time.Time) (*events.ContextResponse, error) {
	limited, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	count, err := e.limiter.Pace(limited, a.Tenant)
	if err != nil && ctx.Err() == nil {
		return nil, nil //nolint:nilnil // the agent requests it
	}
	if err != nil {
		return nil, err
	}
	out, err := s.Context(ctx, &events.ContextRequest{Tenant: a.Tenant, Session: a.Session})
	if err == nil {
		count(out.Bytes())
	}
	return out, err
}
