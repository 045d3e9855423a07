package query

import (
	"cmp"
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

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
	release, err := limit.Of(ctx).Borrow(ctx, historyMemory)
	if err != nil {
		return nil, orEnded(ctx, err)
	}
	defer release()
	return Reading(ctx, func() (*events.HistoryResponse, error) {
		return out, orEnded(ctx, s.readCompactions(ctx, a, int(cmp.Or(in.Limit, events.MaxHistory)), out))
	})
}

// readCompactions adds the newest of a session to an answer.
func (s *Service) readCompactions(ctx context.Context, a events.Address, most int, out *events.HistoryResponse) error {
	op := limit.Of(ctx)
	if err := op.Compute(ctx); err != nil {
		return err
	}
	subject := events.Outcome(events.PartitionOf(a, s.config.Partitions.Count()), events.KindCompacted, a)
	return stream.ReadStream(ctx, s.config.JS, topology.OutcomesStream, subject, 1, 0, func(m jetstream.Msg, _ uint64) error {
		e, err := entry(m)
		if err != nil {
			return nil //nolint:nilerr // none of a worker, or of a version that this one cannot read
		}
		if out.Entries = append([]events.HistoryEntry{e}, out.Entries...); len(out.Entries) > most {
			out.Entries = out.Entries[:most]
			out.Older++
		}
		return op.Yield(ctx)
	})
}

func entry(m jetstream.Msg) (e events.HistoryEntry, err error) {
	at, err := m.Metadata()
	if err != nil {
		return e, err
	}
	body, err := events.DecodeOutcome(events.KindCompacted, m.Data())
	if err != nil {
		return e, err
	}
	b, ok := body.(*events.Compacted)
	if !ok {
		return e, fmt.Errorf("%s holds no session.compacted", m.Subject())
	}
	return b.Entry(at.Timestamp.UnixMilli()), nil
}
