package commit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
)

// awaitPause is the interval between reads of a marker.
const awaitPause = 10 * time.Millisecond

// AwaitCursor waits until every partition is decided and committed up to the
// last of its events at or before sequence seq of the log.
func AwaitCursor(ctx context.Context, js jetstream.JetStream, t partitions.Table, seq uint64) error {
	for p := range t.Count() {
		m, err := LastMarker(ctx, js.Conn(), p)
		if err != nil {
			return fmt.Errorf("await cursor: %w", err)
		}
		if from := t.Lineage(p); m.Seq == 0 && len(from) > 0 && from[len(from)-1].First == 0 {
			continue // it has no event before its split
		}
		last, err := lastOf(ctx, js, t.Sources(p, m.Cursor), seq)
		if err != nil {
			return fmt.Errorf("await cursor: %w", err)
		}
		err = retry.Every(awaitPause).Until(ctx, func() (bool, error) {
			found, err := LastMarker(ctx, js.Conn(), p)
			if err == nil {
				m = found
			}
			return err == nil && found.Cursor >= last, err
		})
		if err != nil {
			return fmt.Errorf("await cursor: partition %d is at %d of %d: %w", p, m.Cursor, last, err)
		}
	}
	return nil
}

// lastOf returns the newest sequence stored under one of the partitions, at most seq; 0 without one.
func lastOf(ctx context.Context, js jetstream.JetStream, sources []int, seq uint64) (last uint64, err error) {
	for _, p := range sources {
		m, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.LogStream, jsapi.GetRequest{LastFor: events.LogFilter(p), NoHeader: true})
		if err == nil {
			last = max(last, min(m.Seq, seq))
		} else if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return 0, err
		}
	}
	return last, nil
}
