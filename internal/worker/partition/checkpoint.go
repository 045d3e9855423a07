package partition

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
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
}

// openStore opens the partition's file; one that is damaged is quarantined. It comes
// before the take-over: a worker that cannot have the file must not take the
// partition from the one that has it.
func (p *Partition) openStore() error {
	if p.set.config.Dir == "" {
		return nil
	}
	store, err := p.openFile(p.set.fileOptions(p.ID))
	if err != nil {
		return err
	}
	p.store, p.decider.Store = store, store
	return nil
}

// openFile opens a ledger file of the partition, and reports that it was quarantined.
func (p *Partition) openFile(o kv.Options) (*kv.Store, error) {
	store, aside, err := kv.Open(o)
	if err == nil && aside != nil {
		p.quarantine(aside.Reason, aside.Moved)
	}
	return store, err
}

// path is where the partition's file is.
func (p *Partition) path() string { return p.set.fileOptions(p.ID).Path }

// fileOptions say where a partition's file is, and how it is opened.
func (set *Set) fileOptions(id int) kv.Options {
	return kv.Options{
		Path:      filepath.Join(set.config.Dir, fmt.Sprintf("p%d.db", id)),
		Partition: id, Partitions: set.config.Streams.Partitions, Sync: set.config.Sync,
	}
}

// resume returns the position that the file is at. One that does not fit the
// log, or the marker, is quarantined too: everything follows from the log. Where a
// snapshot is of more use, it takes the file's place.
func (p *Partition) resume(ctx context.Context, log topology.StreamState, marker position) (position, error) {
	if p.store == nil {
		return position{}, nil
	}
	m := p.store.Position()
	reason, err := p.mismatch(ctx, m, log, marker)
	if err != nil {
		return position{}, err
	}
	if reason != nil {
		moved, err := p.store.Discard()
		if err != nil {
			return position{}, err
		}
		p.quarantine(reason, moved)
		if err := p.openStore(); err != nil {
			return position{}, err
		}
	}
	if err := p.restore(ctx, log, marker); err != nil {
		return position{}, err
	}
	m = p.store.Position()
	p.outcomesSeq = m.Outcomes
	return position{seq: compaction.Seq(m.Cursor), chain: m.Chain, id: m.LastID, time: m.LastTime}, nil
}

func (p *Partition) quarantine(reason error, moved string) {
	observe.Call(p.set.config.Listener.Quarantined, observe.Quarantined{Partition: p.ID, Reason: reason, Moved: moved})
}

// mismatch returns why a checkpoint cannot be used: the log is another one, has lost the
// events it follows, or OUTCOMES has lost what was committed about them. err is that
// the log cannot be read, which means nothing for the checkpoint.
func (p *Partition) mismatch(ctx context.Context, m kv.Position, log topology.StreamState, marker position) (reason, err error) {
	switch {
	case m == kv.Position{}:
		return nil, nil // fresh
	case m.LogCreated != log.Created.UnixNano():
		return errors.New("checkpoint belongs to another stream"), nil
	case m.Cursor > log.Last || m.Cursor > uint64(marker.seq):
		return fmt.Errorf("checkpoint is at %d, the log ends at %d and the marker at %d", m.Cursor, log.Last, marker.seq), nil
	}
	found, err := stream.GetLog(ctx, p.set.config.Read, []uint64{m.Cursor})
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		return nil, nil // aged away since
	}
	if err != nil {
		return nil, err
	}
	if at := found[0].Time.UnixMilli(); at != m.LastTime {
		return fmt.Errorf("the event at the checkpoint has another time: %d, not %d", at, m.LastTime), nil
	}
	return nil, nil
}

// due reports whether it is time for a checkpoint.
func (p *Partition) due() bool {
	if p.store == nil || p.pending != nil || p.writing.Load() {
		return false
	}
	p.state.Lock()
	defer p.state.Unlock()
	n := len(p.decider.Dirty)
	return n > 0 && (p.decider.Events >= p.set.config.CheckpointEvents || p.memoryPressure() > 0 || time.Since(p.saved) >= p.set.config.CheckpointEvery)
}

// collect takes the ledgers that changed, as they are now. Nothing may be written
// before everything that was emitted up to now is committed.
func (p *Partition) collect() error {
	p.state.Lock()
	defer p.state.Unlock()
	changes, written, err := p.decider.Collect()
	if err != nil {
		return err
	}
	c := &checkpoint{end: p.decided, outcomes: p.committer.Fence(), changes: changes, written: written}
	p.pending, p.saved = c, time.Now()
	failpoint.Pass("collected")
	return nil
}

// save writes the pending checkpoint in the background, once its position is
// committed.
func (p *Partition) save(ctx context.Context) {
	c := p.pending
	if c == nil || p.committed < c.end.seq && !failpoint.CheckpointEarly() {
		return
	}
	p.pending = nil
	p.writing.Store(true)
	p.background.Go(func() {
		defer p.writing.Store(false)
		p.write(ctx, c)
	})
}

// checkpointReplay writes a checkpoint when one is due, so that a long replay needs
// no more memory than any other time, and a crash in it costs little. All of it was
// committed long ago; what was published about it is read again from where the file
// stood.
func (p *Partition) checkpointReplay(ctx context.Context, whole bool) error {
	if p.store == nil || p.decider.Events < p.set.config.CheckpointEvents && p.memoryPressure() == 0 {
		return nil
	}
	changes, written, err := p.decider.Collect()
	if err != nil {
		return err
	}
	end := p.decided
	if !whole {
		end.chain = 0 // not known
	}
	p.write(ctx, &checkpoint{end: end, outcomes: p.outcomesSeq, changes: changes, written: written})
	select {
	case err := <-p.failed:
		return err
	default:
		return ctx.Err()
	}
}

// write stores a checkpoint; it tries again until it succeeds or ctx ends, since
// its rows are nowhere else.
// See docs/adr/0014.
func (p *Partition) write(ctx context.Context, c *checkpoint) {
	failpoint.Pass("before-checkpoint")
	began := time.Now()
	m := kv.Position{
		Cursor: uint64(c.end.seq), Chain: c.end.chain, LastID: c.end.id, LastTime: c.end.time,
		LogCreated: p.set.config.Streams.Log.Created.UnixNano(), Config: p.set.config.Compaction.Hash(), Outcomes: c.outcomes,
	}
	for {
		err := p.store.Checkpoint(m, c.changes)
		if err == nil {
			break
		}
		if _, damaged := errors.AsType[*kv.DamagedError](err); damaged {
			p.fail(err)
			return
		}
		p.retrying("checkpoint")(err)
		select {
		case <-ctx.Done():
			p.unwritten = true
			return
		case <-time.After(fullPause):
		}
	}
	failpoint.Pass("checkpointed")
	wakeUp(p.checkpointed)
	p.state.Lock()
	p.decider.MarkStored(c.written)
	evicted, kept := p.evict(), len(p.decider.Cache)
	p.state.Unlock()
	p.pauseIntake(false)
	observe.Call(p.set.config.Listener.Checkpointed, observe.Checkpointed{
		Partition: p.ID, Cursor: c.end.seq, Ledgers: len(c.changes), Evicted: evicted, Kept: kept, Took: time.Since(began),
	})
}

// closeStore lets go of the file. After a drain it first writes what is left; an
// event that was decided and not committed any more keeps it from that.
func (p *Partition) closeStore(ctx context.Context, drained bool) error {
	if p.store == nil {
		return nil
	}
	p.background.Wait()
	if p.decider.LoadErr != nil {
		moved, err := p.store.Discard()
		p.quarantine(p.decider.LoadErr, moved)
		return err
	}
	for drained && !p.unwritten && (p.pending != nil || len(p.decider.Dirty) > 0) {
		if p.pending == nil {
			if err := p.collect(); err != nil {
				return errors.Join(err, p.store.Close())
			}
		}
		if p.save(ctx); p.pending != nil {
			break
		}
		p.background.Wait()
	}
	if p.last && p.set.snapshots.enabled() {
		p.set.snapshots.take(ctx, p, 1)
	}
	return p.store.Close()
}
