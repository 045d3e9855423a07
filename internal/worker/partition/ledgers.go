package partition

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/kv"
	"compactd/internal/worker/decide"
)

// ledgers holds the ledgers of the partition at one position of the log. Intake changes them, the
// checkpointer collects the changes, requests read them.
type ledgers struct {
	scope
	life  *lifecycle
	ahead atomic.Int64 // events applied by this owner since its last snapshot

	mu      sync.Mutex // guards the fields below; never held during a wait for the queue
	decider *decide.Decider
	decided position
	table   partitions.Table // the set's table, and this partition's split before it is stored
	dropped dropped
}

// begin replaces the ledgers by those of a store at a position. store may be nil.
func (l *ledgers) begin(store decide.Store, at position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decider, l.decided = decide.New(l.set.Compaction()), at
	l.decider.Store = store
	l.table, l.dropped = l.set.Table(), dropped{}
}

// resume begins with the ledgers of a file. It sets the split, which the next marker needs even without
// a replay.
func (l *ledgers) resume(store decide.Store, from kv.Position, split partitions.Split) {
	at := positionOfFile(from)
	at.split = split
	l.begin(store, at)
}

// decides reports whether this partition decides an event. It also reads events of other partitions.
func (l *ledgers) decides(e decide.Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.table.At(e.Address, uint64(e.Seq)) == l.ID
}

// decide decides an event under the config in force. It returns the group to queue, whether the event holds
// text for views, and the memory pressure.
func (l *ledgers) decide(e decide.Event, at time.Time) (g group, text bool, pressure int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decider.Config = l.set.Compaction()
	outs, text := l.decider.Process(e)
	l.advance(e, at)
	g.end, g.repeated, g.forked = l.decided, l.decider.Repeated, l.decider.ForkedBy(e)
	for _, o := range outs {
		g.outcomes = append(g.outcomes, emitted{address: e.OutcomeAddress(), outcome: o, trace: e.Trace, seq: e.Seq})
	}
	return g, text, l.memoryPressure(), l.decider.LoadErr
}

// skip moves the position past an event that another partition decides. The chain does not include it.
func (l *ledgers) skip(e decide.Event, at time.Time) group {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decided.seq, l.decided.id, l.decided.time = e.Seq, e.ID, at.UnixMilli()
	return group{end: l.decided}
}

// pass moves the position past an event of a session that stayed with the parent at the split. The chain
// includes it.
func (l *ledgers) pass(e decide.Event, at time.Time) position {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(e, at)
	return l.decided
}

// bytes is [decide.Decider.Bytes].
func (l *ledgers) bytes(e decide.Event) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decider.Bytes(e)
}

// applyRecorded applies an event and its published outcomes, decided under config, and returns the
// position after it.
func (l *ledgers) applyRecorded(e decide.Event, at time.Time, config *compaction.Config, outs []compaction.Outcome, report func(error)) (position, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decider.Config = config
	if err := l.decider.ApplyRecorded(e, outs); err != nil {
		report(err)
	}
	l.advance(e, at)
	return l.decided, l.decider.LoadErr
}

// advance moves the position past an event. The caller holds mu.
func (l *ledgers) advance(e decide.Event, at time.Time) {
	l.decider.Events++
	l.decided = positionAfter(l.decided, e, at)
	l.decided.config = l.decider.Config.Hash()
	l.ahead.Add(1)
}

// reach ends a replay: it sets the position to the marker, and the config in force for later events.
func (l *ledgers) reach(marker position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decider.Config = l.set.Compaction()
	l.decided.seq, l.decided.chain, l.decided.config = marker.seq, cmp.Or(marker.chain, l.decided.chain), l.decider.Config.Hash()
	l.decided.split = marker.split
	if marker.time > 0 {
		l.decided.time = marker.time // the event may belong to another partition
	}
}

// unsnapped returns the number of events since the newest snapshot.
func (l *ledgers) unsnapped() int64 { return l.ahead.Load() }

// snapshotted subtracts the events that a stored snapshot covers.
func (l *ledgers) snapshotted(events int64) { l.ahead.Add(-events) }

// collect copies the ledgers that changed.
func (l *ledgers) collect() (*checkpoint, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changes, written, err := l.decider.Collect()
	if err != nil {
		return nil, err
	}
	c := &checkpoint{end: l.decided, changes: changes, written: written, dropped: l.dropped.some && l.dropped.all}
	l.dropped.some = l.dropped.some && !l.dropped.all
	return c, nil
}

// stored marks the ledgers of a written checkpoint as stored, and evicts ledgers.
func (l *ledgers) stored(c *checkpoint) (evicted, left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decider.SetStored(c.written)
	return l.evict(), len(l.decider.Cache)
}

// changed reports whether a ledger changed since the last checkpoint. enough reports that a checkpoint is
// due at once: after CheckpointEvents events, or under memory pressure.
func (l *ledgers) changed() (some, enough bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	some = len(l.decider.Dirty) > 0
	return some, some && (l.decider.Events >= l.set.config.CheckpointEvents || l.memoryPressure() > 0)
}

// position returns the position of the ledgers.
func (l *ledgers) position() position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decided
}

// cached returns the number of ledgers in memory, and the error of a failed load.
func (l *ledgers) cached() (n int, loadErr error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.decider.Cache), l.decider.LoadErr
}

var (
	// ErrNotServing: the partition is not served, and its ledgers may be closed.
	ErrNotServing = errors.New("the partition is not served")
	// ErrMoved: the log grew, and another partition now decides the session.
	ErrMoved = errors.New("another partition decides this session since the log grew")
)

// Inspect calls read with the ledger of a session, under the lock of the ledgers. It returns the last
// event that the ledger contains. read must not keep the ledger. [ErrMoved]: the session moved by a split.
func (l *ledgers) Inspect(a events.Address, read func(*compaction.Ledger)) (measure.Seq, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.phase() != serving {
		return 0, ErrNotServing
	}
	if l.moved(a) {
		return 0, ErrMoved
	}
	found, err := l.decider.Ledger(a)
	if err != nil {
		return 0, err
	}
	read(found)
	l.evict() // l.decider.Ledger may have loaded one
	return l.decided.seq, nil
}

// moved reports whether another partition decides the next event of a session: its ledger is dropped, or
// will be. The caller holds mu.
func (l *ledgers) moved(a events.Address) bool { return l.table.Of(a) != l.ID || l.set.Of(a) != l.ID }

// lists returns [ErrNotServing] if the ledgers cannot be listed. Between the decision on a split and its
// commit, the parent no longer lists the sessions of the child, and other workers do not have the child in
// their tables: a list would lack these sessions. The caller holds mu.
func (l *ledgers) lists() error {
	if l.life.phase() != serving || l.table.Newest(l.ID) != l.set.Table().Newest(l.ID) {
		return ErrNotServing
	}
	return nil
}

// overviewBatch is the number of sessions described under one lock, while an event waits.
const overviewBatch = 64

// Overviews calls fn with every session of the partition that has a turn, in no order. It loads no ledger
// into memory. An error of fn ends it.
func (l *ledgers) Overviews(fn func(events.Address, *compaction.Overview) error) error {
	l.mu.Lock()
	cached, store := slices.Collect(maps.Keys(l.decider.Cache)), l.decider.Store
	l.mu.Unlock()
	if err := l.overviews(cached, fn); err != nil || store == nil {
		return err
	}
	seen := make(map[events.Address]bool, len(cached))
	for _, a := range cached {
		seen[a] = true
	}
	for last := (events.Address{}); ; {
		found, err := store.After(last, idleBatch)
		if err != nil {
			return fmt.Errorf("list sessions: %w", err)
		}
		if len(found) == 0 {
			return nil
		}
		last = found[len(found)-1]
		if err := l.overviews(slices.DeleteFunc(found, func(a events.Address) bool { return seen[a] }), fn); err != nil {
			return err
		}
	}
}

// overviews calls fn with sessions, batch by batch.
func (l *ledgers) overviews(all []events.Address, fn func(events.Address, *compaction.Overview) error) error {
	for batch := range slices.Chunk(all, overviewBatch) {
		described, err := l.describe(batch)
		if err != nil {
			return err
		}
		for i, a := range batch {
			if !described[i].Known {
				continue
			}
			if err := fn(a, &described[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *ledgers) describe(batch []events.Address) ([]compaction.Overview, error) {
	out := make([]compaction.Overview, len(batch))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.lists(); err != nil {
		return nil, err
	}
	config := l.set.Compaction() // not the decider's, which is that of the last event
	for i, a := range batch {
		if l.moved(a) {
			continue
		}
		var err error
		if out[i], err = l.decider.Overview(a, config); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Sessions returns at most n sessions of a tenant after one, in order.
func (l *ledgers) Sessions(tenant, after string, n int) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.lists(); err != nil {
		return nil, err
	}
	for out := []string(nil); ; {
		found, err := l.decider.Sessions(tenant, after, n)
		if err != nil {
			return nil, err
		}
		for _, after = range found {
			if !l.moved(events.Address{Tenant: tenant, Session: after}) {
				out = append(out, after)
			}
		}
		if len(found) < n || len(out) >= n {
			return out[:min(n, len(out))], nil
		}
	}
}
