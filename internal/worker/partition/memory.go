package partition

import (
	"context"
	"time"

	"compactd/internal/broker/retry"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
)

// A worker divides its memory. All partitions together have an eighth for ledgers, up to twice that
// while a checkpoint is written, an eighth for cached texts, and an eighth for histories that are
// being rendered. Per step of an event (decided, texts read ahead, rendered for a commit) a
// partition has its share of an eighth. Unread messages take up to twice the largest message in
// each partition. Package syncs remembers digests of histories in at most 32 MiB, whatever the memory. The
// rest is for the garbage collector, summaries and answers to requests.

func ledgersShare(memory int64) int { return int(memory / 8) }

func payloadsShare(memory int64) uint64 { return uint64(memory / 8) }

// JobsShare is the memory of each lane for texts of summary jobs that are read ahead.
func JobsShare(memory int64) int { return int(max(memory/32, 1<<20)) }

// renderedBytes estimates the memory of a token while it is rendered: in the text of a turn, in a
// message, and twice in the payload.
const renderedBytes = 16

// rendering begins the rendering of a compaction, in turn with other partitions and requests. The
// returned context carries its operation.
func (s scope) rendering(ctx context.Context, c *events.Compacted) (_ context.Context, end func(), err error) {
	bytes, l := max(c.TokensAfter, 1)*renderedBytes, s.set.config.Limiter
	release, err := l.Hold(ctx, limit.Histories, limit.Partitions, bytes)
	if err != nil {
		return nil, nil, err
	}
	op := s.computing(ctx, int(bytes))
	return op.With(ctx), func() { op.End(); release() }, nil
}

// turnWait limits the wait of a partition for its turn, since other work waits for the partition. After
// it the partition computes beside the holder of the turn.
const turnWait = 50 * time.Millisecond

// computing begins work on a number of bytes. Large work waits for its turn, up to turnWait.
func (s scope) computing(ctx context.Context, bytes int) *limit.Operation {
	ctx, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	op := s.set.config.Limiter.Begin(limit.Partitions)
	if bytes > limit.Large {
		_ = op.Compute(ctx)
	}
	return op
}

// partitionShare returns the bytes that a partition may hold per step: 1 MiB, enough for a few histories,
// to 8 MiB, beyond which a commit gains nothing. A single history may be larger.
func partitionShare(memory int64, partitions int) int {
	return int(min(max(memory/8/int64(partitions), 1<<20), 8<<20))
}

// bounds returns the limits on the partition's ledgers in memory: their number and bytes.
func (l *ledgers) bounds() (n, bytes int) {
	c := &l.set.config
	return c.MaxLedgers / l.set.Count(), c.MaxLedgerBytes / l.set.Count()
}

// unusedEvery is the interval of checks for unused texts and ledgers.
const unusedEvery = 10 * time.Second

// releaseUnused evicts all texts, or all ledgers of a partition, if none of them was used for a while.
// It runs until ctx ends.
func (set *Set) releaseUnused(ctx context.Context) {
	retry.Tick(ctx, unusedEvery, func() {
		set.Payloads.InvalidateUnused()
		for id := range set.Count() {
			if p := set.At(id); p != nil {
				p.evictUnused()
			}
		}
	})
}

// evict keeps the ledgers in memory within the partition's share. The caller holds mu.
func (l *ledgers) evict() int { return l.decider.Evict(l.bounds()) }

// evictUnused evicts all ledgers if none was used for a while.
func (l *ledgers) evictUnused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decider.EvictUnused()
}

// pressureEvents is the smallest number of events that justifies a checkpoint to free memory.
const pressureEvents = 100

// memoryPressure returns the ratio of the ledgers' memory to their share, 0 if a checkpoint cannot
// free memory or the last one was too recent: only a checkpoint lets changed ledgers leave memory. From
// 2 on intake waits for the checkpoint. After one it continues for at least pressureEvents, even if
// the checkpoint freed nothing. The caller holds mu.
func (l *ledgers) memoryPressure() int {
	if l.decider.Events < pressureEvents || len(l.decider.Dirty) == 0 {
		return 0
	}
	_, bytes := l.bounds()
	return l.decider.Weight / (bytes + bytes/8 + 1)
}
