package partition

import (
	"context"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/retry"
	"compactd/internal/worker/observe"
)

// scope is the partition that a component works for.
type scope struct {
	ID  int
	set *Set
}

// retryPause is the pause before a step is tried again that found no room, or no healthy disk.
const retryPause = time.Second

// retry calls op until it succeeds, its error is permanent, or ctx ends.
func (s scope) retry(ctx context.Context, step string, op func() error) error {
	return retry.Every(retryPause).Do(ctx, s.retrying(step), op)
}

// retrying returns a func that reports why a step is tried again.
func (s scope) retrying(step string) func(error) {
	return func(err error) {
		observe.Call(s.set.config.Listener.Retrying, observe.Retrying{Partition: s.ID, Step: step, Err: err})
	}
}

// marker describes a position in a commit.
func (s scope) marker(at position) commit.Marker {
	return commit.Marker{
		Cursor: uint64(at.seq), Chain: at.chain, LastID: at.id, LastTime: at.time,
		Config: s.set.config.Compaction.Hash(), LogCreated: s.set.config.Streams.Log.Created.UnixNano(),
	}
}

// portion is how many of so many sequences of the log may be of one partition.
func (s scope) portion(sequences uint64) int {
	return max(1, int(sequences)/s.set.config.Streams.Partitions)
}
