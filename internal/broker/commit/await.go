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
)

// awaitPause is how often a marker is read.
const awaitPause = 10 * time.Millisecond

// AwaitCursor waits until every partition is decided and committed up to the
// last of its events at or before sequence seq of the log.
func AwaitCursor(ctx context.Context, js jetstream.JetStream, partitions int, seq uint64) error {
	for p := range partitions {
		last, err := lastOf(ctx, js, p, seq)
		if err != nil {
			return fmt.Errorf("await cursor: %w", err)
		}
		var m Stored
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

// lastOf returns the newest sequence of a partition's log, at most seq; 0 if
// there is none.
func lastOf(ctx context.Context, js jetstream.JetStream, partition int, seq uint64) (uint64, error) {
	m, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.LogStream, jsapi.GetRequest{LastFor: events.LogFilter(partition), NoHeader: true})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return min(m.Seq, seq), nil
}
