package partition

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"compactd/internal/broker/retry"
	"compactd/internal/compaction/measure"
	"compactd/internal/kv"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
)

// checkpoint holds the ledgers of a partition that changed since the last checkpoint.
type checkpoint struct {
	end      position
	outcomes uint64 // sequence in OUTCOMES; later messages may belong to events after end
	changes  []kv.Change
	written  []*decide.Entry // marked as stored after the write
	dropped  bool            // it drops the last sessions of other partitions from the file
}

// checkpointer writes changed ledgers into the file, one checkpoint at a time. The goroutine
// of [Partition.commitLoop] calls it; it writes in a separate goroutine.
type checkpointer struct {
	scope
	file    *file
	ledgers *ledgers
	queue   *queue
	eraser  *eraser
	fail    func(error)

	epoch   uint64      // of the owner
	pending *checkpoint // collected, waits until its position is committed
	saved   time.Time   // of the last collection

	background sync.WaitGroup
	writing    atomic.Bool // a write is running
	unwritten  bool        // a write failed: its rows are lost, no checkpoint may follow. Read after background.Wait
}

// begin sets the owner's epoch and starts the interval of checkpoints.
func (c *checkpointer) begin(epoch uint64) { c.epoch, c.saved = epoch, time.Now() }

// wait waits for the end of a running write.
func (c *checkpointer) wait() { c.background.Wait() }

// collectDue collects a checkpoint if one is due.
func (c *checkpointer) collectDue(outcomes uint64) error {
	if c.pending != nil || c.writing.Load() {
		return nil
	}
	if some, enough := c.ledgers.changed(); !enough && (!some || time.Since(c.saved) < c.set.config.CheckpointEvery) {
		return nil
	}
	return c.collect(outcomes)
}

// collect copies the ledgers that changed. They may be written only after every outcome emitted
// so far is committed.
func (c *checkpointer) collect(outcomes uint64) (err error) {
	if c.pending, err = c.ledgers.collect(); err != nil {
		return err
	}
	c.pending.outcomes, c.saved = outcomes, time.Now()
	failpoint.Pass("collected")
	return nil
}

// wanted returns the position that the pending checkpoint needs committed; 0 without one.
func (c *checkpointer) wanted() measure.Seq {
	if c.pending == nil {
		return 0
	}
	return c.pending.end.seq
}

// save writes the pending checkpoint in the background if its position is committed.
func (c *checkpointer) save(ctx context.Context, committed measure.Seq) {
	due := c.pending
	if due == nil || committed < due.end.seq && !failpoint.CheckpointEarly() {
		return
	}
	c.pending = nil
	c.writing.Store(true)
	c.background.Go(func() {
		defer c.writing.Store(false)
		if err := c.write(ctx, due); err != nil {
			if c.unwritten = true; ctx.Err() == nil {
				c.fail(err)
			}
		}
	})
	if failpoint.CheckpointEarly() {
		if c.background.Wait(); committed < due.end.seq {
			failpoint.Pass("checkpoint-ahead")
		}
	}
}

// replayed writes a checkpoint during a replay if enough changed. It bounds the memory of a
// long replay and the loss by a crash. All its events are committed; the next recovery
// reads their outcomes again from the file's old position in OUTCOMES. chained reports that the
// ledgers have the hash of the log.
func (c *checkpointer) replayed(ctx context.Context, chained bool) error {
	if _, enough := c.ledgers.changed(); !enough {
		return nil
	}
	due, err := c.ledgers.collect()
	if err != nil {
		return err
	}
	if due.outcomes = c.file.position().Outcomes; !chained {
		due.end.chain = 0 // unknown
	}
	return c.write(ctx, due)
}

// write stores a checkpoint. No other place has its rows, so it retries until it succeeds, the
// file is damaged or ctx ends.
// See docs/adr/0014.
func (c *checkpointer) write(ctx context.Context, due *checkpoint) error {
	failpoint.Pass("before-checkpoint")
	began := time.Now()
	m := kv.Position{
		Cursor: uint64(due.end.seq), Chain: due.end.chain, LastID: due.end.id, LastTime: due.end.time,
		LogCreated: c.set.config.Streams.Log.Created.UnixNano(), Config: c.set.Compaction().Hash(), Outcomes: due.outcomes,
	}
	if err := c.retry(ctx, "checkpoint", func() error {
		err := c.store(m, due.changes)
		_, damaged := errors.AsType[*kv.DamagedError](err)
		return retry.When(!damaged, err)
	}); err != nil {
		return err
	}
	failpoint.Pass("checkpointed")
	evicted, left := c.ledgers.stored(due)
	if due.dropped {
		c.eraser.add(droppedAt(m.Cursor))
	}
	c.queue.pause(false)
	observe.Call(c.set.config.Listener.Checkpointed, observe.Checkpointed{
		Partition: c.ID, Cursor: due.end.seq, Ledgers: len(due.changes), Evicted: evicted, Kept: left, Took: time.Since(began),
	})
	return nil
}

// store makes one attempt. Only one partition of a worker stores at a time: eight mapped files took
// half of the worker's memory.
func (c *checkpointer) store(m kv.Position, changes []kv.Change) error {
	c.set.storing.Lock()
	defer c.set.storing.Unlock()
	return c.file.checkpoint(m, changes)
}

// finish writes the remaining changes after a drain. It writes nothing if a decided event was
// not committed.
func (c *checkpointer) finish(ctx context.Context, committed measure.Seq, outcomes uint64) error {
	for c.background.Wait(); !c.unwritten; c.background.Wait() {
		if some, _ := c.ledgers.changed(); c.pending == nil && !some {
			return nil
		}
		if c.pending == nil {
			if err := c.collect(outcomes); err != nil {
				return err
			}
		}
		if c.save(ctx, committed); c.pending != nil {
			return nil
		}
	}
	return nil
}
