package query

import (
	"context"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/payload"
)

// sync takes the history of an agent, and answers what of it to send.
func (s *Service) sync(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	out, err := s.syncer.Answer(ctx, in)
	return out, orEnded(ctx, err)
}

// host is what syncs rest on: a [syncs.Host]. A sync that waits holds no processor.
type host struct {
	*Service
	*payload.Renderer
}

func (h host) Inspect(a events.Address, read func(*compaction.Ledger)) (func(context.Context) error, error) {
	weight := 0
	p, at, err := h.inspect(a, func(l *compaction.Ledger) { weight = l.Weight(); read(l) })
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := h.awaitCommitted(ctx, p, a, at); err != nil {
			return err
		}
		return limit.Of(ctx).ComputeOver(ctx, weight) // it is compared as a whole
	}, nil
}

func (h host) Publish(ctx context.Context, k events.Kind, a events.Address, id string, body []byte) (uint64, error) {
	seq, _, err := h.deliver(ctx, k, a, id, body, true)
	return seq, err
}

func (h host) Sync(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	return received[events.SyncResponse](h.serve(ctx, h.find("sync"), callOf(h.Service, in, (*Service).sync), false))
}

func (h host) MaxBytes() int { return h.maxEvent() }

func (h host) AwaitDecided(ctx context.Context, a events.Address, w events.Await) error {
	return limit.Of(ctx).Idle(ctx, func() error { return h.awaitDecided(ctx, a, w) })
}

func (h host) Outcome(ctx context.Context, in *events.OutcomeRequest) (*events.OutcomeResponse, error) {
	return h.outcome(ctx, in)
}

func (h host) Await(ctx context.Context, done <-chan struct{}) error {
	return limit.Of(ctx).Idle(ctx, func() error {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return whyEnded(ctx)
		}
	})
}
