package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// maxSyncs is how many syncs may be answered at once.
const maxSyncs = 256

// sync takes the history of an agent, and answers what of it to send.
func (s *Service) sync(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	if s.publisher == nil {
		return nil, errors.New("the worker has no connection to publish over")
	}
	out, err := s.syncer.Answer(ctx, in)
	return out, orEnded(ctx, err)
}

// Sync answers a sync for code of this process, by way of the worker that serves the session.
func (s *Service) Sync(ctx context.Context, in *events.SyncRequest) (*events.SyncResponse, error) {
	data, err := in.Encode()
	if err == nil {
		data, err = s.Ask(ctx, "sync", data)
	}
	if err != nil {
		return nil, err
	}
	out := &events.SyncResponse{}
	if err := events.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("read the answer to a sync: %w", err)
	}
	return out, nil
}

// host is what syncs rest on: a [syncs.Host].
type host struct{ *Service }

func (h host) Inspect(a events.Address, read func(*compaction.Ledger)) (func(context.Context) error, error) {
	p, at, err := h.inspect(a, read)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return h.awaitCommitted(ctx, p, a, at) }, nil
}

func (h host) Turn(ctx context.Context, a events.Address, seq compaction.Seq) ([]events.Message, error) {
	return h.config.Partitions.Payloads.Turn(ctx, a, seq)
}

func (h host) Sourced(ctx context.Context, a events.Address, v *compaction.View, own func(compaction.Seq) []events.Message) ([]compaction.Sourced, error) {
	return h.config.Partitions.Payloads.Sourced(ctx, a, v, own)
}

func (h host) Publish(ctx context.Context, k events.Kind, a events.Address, id string, body []byte) (uint64, error) {
	seq, _, err := h.publisher.deliver(ctx, k, a, id, body, true)
	return seq, err
}

func (h host) MaxBytes() int { return h.publisher.MaxBytes() }

func (h host) AwaitDecided(ctx context.Context, a events.Address, w events.Await) error {
	return h.awaitDecided(ctx, a, w)
}

func (h host) Outcome(ctx context.Context, in *events.OutcomeRequest) (*events.OutcomeResponse, error) {
	return h.outcome(ctx, in)
}

func (h host) Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return whyEnded(ctx)
	}
}
