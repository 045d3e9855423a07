package partition

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"compactd/internal/broker/retry"
	"compactd/internal/compaction"
	"compactd/internal/kv"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
)

// checkpoint is a partition's ledgers at a position, as far as they changed since
// the last one.
type checkpoint struct {
	end      position
	outcomes uint64 // sequence in OUTCOMES; what lies behind it may be of events after end
	changes  []kv.Change
	written  []*decide.Entry // marked as stored when it is
	dropped  bool            // with it all sessions of others have left the file
}

// checkpointer writes the ledgers that changed into the file, one checkpoint at a time. It
// is for the goroutine of [Partition.commitLoop], and writes in one of its own.
type checkpointer struct {
	scope
	file    *file
	ledgers *ledgers
	queue   *queue
	eraser  *eraser
	fail    func(error)

	epoch   uint64      // of the owner
	pending *checkpoint // collected, waits for its commit
	saved   time.Time   // when the last one was collected

	background sync.WaitGroup
	writing    atomic.Bool // one is being written
	unwritten  bool        // one was given up: its rows are lost, so none may follow. Read after background
}

// begin sets what checkpoints and snapshots of an owner follow.
func (c *checkpointer) begin(epoch uint64) { c.epoch, c.saved = epoch, time.Now() }

// wait returns when no checkpoint is being written.
func (c *checkpointer) wait() { c.background.Wait() }

// collectDue collects a checkpoint if it is time for one.
func (c *checkpointer) collectDue(outcomes uint64) error {
	if c.pending != nil || c.writing.Load() {
		return nil
	}
	if some, enough := c.ledgers.changed(); !enough && (!some || time.Since(c.saved) < c.set.config.CheckpointEvery) {
		return nil
	}
	return c.collect(outcomes)
}

// collect takes the ledgers that changed, as they are now. Nothing may be written
// before everything that was emitted up to now is committed.
func (c *checkpointer) collect(outcomes uint64) (err error) {
	if c.pending, err = c.ledgers.collect(); err != nil {
		return err
	}
	c.pending.outcomes, c.saved = outcomes, time.Now()
	failpoint.Pass("collected")
	return nil
}

// wanted is the position that has to be committed for the pending checkpoint; 0 for none.
func (c *checkpointer) wanted() compaction.Seq {
	if c.pending == nil {
		return 0
	}
	return c.pending.end.seq
}

// save writes the pending checkpoint in the background, once its position is
// committed.
func (c *checkpointer) save(ctx context.Context, committed compaction.Seq) {
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

// replayed writes a checkpoint when one is due, so that a long replay needs no more memory
// than any other time, and a crash in it costs little. All of it was committed long ago;
// what was published about it is read again from where the file was. chained means that the
// hash of the ledgers is that of the log.
func (c *checkpointer) replayed(ctx context.Context, chained bool) error {
	if _, enough := c.ledgers.changed(); !enough {
		return nil
	}
	due, err := c.ledgers.collect()
	if err != nil {
		return err
	}
	if due.outcomes = c.file.position().Outcomes; !chained {
		due.end.chain = 0 // not known
	}
	return c.write(ctx, due)
}

// write stores a checkpoint; it tries again until it succeeds, the file is damaged or ctx
// ends, since its rows are nowhere else.
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

// store makes one attempt, alone in the worker: eight files that are mapped at once were half of its memory.
func (c *checkpointer) store(m kv.Position, changes []kv.Change) error {
	c.set.storing.Lock()
	defer c.set.storing.Unlock()
	return c.file.checkpoint(m, changes)
}

// finish writes what is left after a drain. An event that was decided and not committed any
// more keeps it from that.
func (c *checkpointer) finish(ctx context.Context, committed compaction.Seq, outcomes uint64) error {
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
