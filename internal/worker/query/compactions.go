package query

import (
	"cmp"
	"context"
	"time"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
)

// historyMemory is what a read of compactions holds: a large one as it is stored, and decoded.
const historyMemory = 4 * events.MaxOutputBytes

// compactions answers when and why a session was compacted, as the stream of outcomes has
// it. A tenant may ask, and cannot read the stream.
func (s *Service) compactions(ctx context.Context, in *events.HistoryRequest) (*events.HistoryResponse, error) {
	a := in.Address()
	out := &events.HistoryResponse{V: events.Version, Entries: []events.HistoryEntry{}}
	if _, _, err := s.inspect(a, func(l *compaction.Ledger) {
		if out.Known = l.HasTurns(); out.Known {
			out.Generation, out.Through = l.Generation(), l.Through()
		}
	}); err != nil {
		return nil, err
	}
	most := int(cmp.Or(in.Limit, events.MaxHistory))
	err := s.Compactions(ctx, a, func(c *events.Compacted, stored time.Time) error {
		if out.Entries = append([]events.HistoryEntry{c.Entry(stored.UnixMilli())}, out.Entries...); len(out.Entries) > most {
			out.Entries = out.Entries[:most]
			out.Older++
		}
		return nil
	})
	return out, err
}

// Compactions calls fn for each session.compacted of a session that is stored, oldest first.
func (s *Service) Compactions(ctx context.Context, a events.Address, fn func(c *events.Compacted, stored time.Time) error) error {
	op := limit.Of(ctx)
	release, err := op.Borrow(ctx, historyMemory)
	if err != nil {
		return orEnded(ctx, err)
	}
	defer release()
	subject := events.Outcome(events.PartitionOf(a, s.config.Partitions.Count()), events.KindCompacted, a)
	_, err = Reading(ctx, func() (any, error) {
		return nil, stream.ReadSubject(ctx, s.config.Answers, topology.OutcomesStream, subject, 1, func(m stream.LogMessage) error {
			if err := op.ComputeOver(ctx, len(m.Data)); err != nil {
				return err
			}
			defer op.Rest() // the next one is waited for
			body, err := events.DecodeOutcome(events.KindCompacted, m.Data)
			if c, ok := body.(*events.Compacted); ok && err == nil { // not erased, and of a version that this one can read
				return fn(c, m.Time)
			}
			return nil
		})
	})
	return orEnded(ctx, err)
}
