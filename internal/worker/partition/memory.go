package partition

import (
	"context"
	"time"

	"compactd/internal/broker/retry"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
)

// How a worker divides its memory. An eighth is for the ledgers of sessions, up to twice that
// while a checkpoint is written, an eighth for texts that are rendered again soon, and an eighth
// for histories that are being rendered, of all partitions together. Of each step that events go
// through, decided, texts read ahead, and rendered for a commit, a partition holds its share of an eighth.
// Unread messages take up to twice the largest message, in each partition; the
// rest is for the collector of garbage, summaries, and answers to questions.

func ledgersShare(memory int64) int { return int(memory / 8) }

func payloadsShare(memory int64) uint64 { return uint64(memory / 8) }

// JobsShare is for texts of summary jobs that are read ahead, in each lane.
func JobsShare(memory int64) int { return int(max(memory/32, 1<<20)) }

// renderedBytes is about how much memory a token takes while it is rendered: as text of
// a turn, as a message, and twice in the payload.
const renderedBytes = 16

// rendering begins the work on a compaction, in turn with that of other partitions and requests. Its
// operation is that of the context.
func (s scope) rendering(ctx context.Context, c *events.Compacted) (_ context.Context, end func(), err error) {
	bytes, l := max(c.TokensAfter, 1)*renderedBytes, s.set.config.Limiter
	release, err := l.Hold(ctx, limit.Histories, limit.Partitions, bytes)
	if err != nil {
		return nil, nil, err
	}
	op := s.computing(ctx, int(bytes))
	return op.With(ctx), func() { op.End(); release() }, nil
}

// turnWait is how long the work of a partition waits for its turn at most: others wait for it. Then it
// computes beside what has the turn.
const turnWait = 50 * time.Millisecond

// computing begins work on so many bytes, in its turn if that comes soon.
func (s scope) computing(ctx context.Context, bytes int) *limit.Operation {
	ctx, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	op := s.set.config.Limiter.Begin(limit.Partitions)
	if bytes > limit.Large {
		_ = op.Compute(ctx)
	}
	return op
}

// partitionShare is at most what a commit gains from, and enough for a few histories.
// One history alone may be larger.
func partitionShare(memory int64, partitions int) int {
	return int(min(max(memory/8/int64(partitions), 1<<20), 8<<20))
}

// bounds are how many ledgers of the partition may be in memory, and their bytes.
func (l *ledgers) bounds() (n, bytes int) {
	c := &l.set.config
	return c.MaxLedgers / l.set.Count(), c.MaxLedgerBytes / l.set.Count()
}

// unusedEvery is how often it is checked what was used since the last time.
const unusedEvery = 10 * time.Second

// releaseUnused lets the texts, and the ledgers of each partition, leave memory when none
// was used for a while, until ctx ends.
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

// evictUnused lets all ledgers leave memory when none was used for a while.
func (l *ledgers) evictUnused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decider.EvictUnused()
}

// pressureEvents is how many events are worth a checkpoint for the memory that it frees.
const pressureEvents = 100

// memoryPressure is how many times more than their share of memory the ledgers take, as far
// as a checkpoint can change that: those that changed can leave memory after one only. From
// 2 on intake waits for the checkpoint; after one it goes on for pressureEvents at least,
// whatever that has freed. The caller holds mu.
func (l *ledgers) memoryPressure() int {
	if l.decider.Events < pressureEvents || len(l.decider.Dirty) == 0 {
		return 0
	}
	_, bytes := l.bounds()
	return l.decider.Weight / (bytes + bytes/8 + 1)
}
