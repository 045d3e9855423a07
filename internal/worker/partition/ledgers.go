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
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/kv"
	"compactd/internal/worker/decide"
)

// ledgers are those of the partition, at one position of the log. Intake changes them, the
// checkpointer collects what changed, requests read them.
type ledgers struct {
	scope
	life  *lifecycle
	ahead atomic.Int64 // events since the newest snapshot, as far as this owner has counted

	mu      sync.Mutex // guards the fields below; never held while waiting for room
	decider *decide.Decider
	decided position
	table   partitions.Table // which partition decides an event: as the set has it, and the own split before it is stored
	dropped dropped
}

// begin replaces the ledgers by those of a store, nil for none, at a position.
func (l *ledgers) begin(store decide.Store, at position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decider, l.decided = decide.New(l.set.Compaction()), at
	l.decider.Store = store
	l.table, l.dropped = l.set.Table(), dropped{}
}

// resume begins with what a file holds. The next marker has the split too, where nothing is to be replayed.
func (l *ledgers) resume(store decide.Store, from kv.Position, split partitions.Split) {
	at := positionOfFile(from)
	at.split = split
	l.begin(store, at)
}

// decides reports whether an event is one of this partition. It reads events of others too.
func (l *ledgers) decides(e decide.Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.table.At(e.Address, uint64(e.Seq)) == l.ID
}

// decide decides an event under the config in force and returns what to emit, whether the event holds text that a
// view may show, and the memory pressure after it.
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

// skip moves the position past an event that another partition decides, which is no part of the chain.
func (l *ledgers) skip(e decide.Event, at time.Time) group {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decided.seq, l.decided.id, l.decided.time = e.Seq, e.ID, at.UnixMilli()
	return group{end: l.decided}
}

// pass moves the position past an event of a session that stayed when the partition was split off: it is part of
// the chain.
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

// applyRecorded applies an event and what was published about it, decided under config, and
// returns the position behind it.
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

// advance moves the position behind an event. The caller holds mu.
func (l *ledgers) advance(e decide.Event, at time.Time) {
	l.decider.Events++
	l.decided = positionAfter(l.decided, e, at)
	l.decided.config = l.decider.Config.Hash()
	l.ahead.Add(1)
}

// reach ends a replay: the ledgers are at the marker, and what follows is decided under
// the present config.
func (l *ledgers) reach(marker position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decider.Config = l.set.Compaction()
	l.decided.seq, l.decided.chain, l.decided.config = marker.seq, cmp.Or(marker.chain, l.decided.chain), l.decider.Config.Hash()
	l.decided.split = marker.split
	if marker.time > 0 {
		l.decided.time = marker.time // of an event that may be another partition's
	}
}

// unsnapped is how many events the ledgers are ahead of the newest snapshot.
func (l *ledgers) unsnapped() int64 { return l.ahead.Load() }

// snapshotted subtracts the events that a stored snapshot covers.
func (l *ledgers) snapshotted(events int64) { l.ahead.Add(-events) }

// collect takes the ledgers that changed, as they are now.
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

// stored notes that a checkpoint is written, and lets ledgers leave memory.
func (l *ledgers) stored(c *checkpoint) (evicted, left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decider.SetStored(c.written)
	return l.evict(), len(l.decider.Cache)
}

// changed reports whether a ledger has changed since the last checkpoint, and whether that
// is enough for one at any time: so many events, or memory pressure.
func (l *ledgers) changed() (some, enough bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	some = len(l.decider.Dirty) > 0
	return some, some && (l.decider.Events >= l.set.config.CheckpointEvents || l.memoryPressure() > 0)
}

// position is that of the ledgers.
func (l *ledgers) position() position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decided
}

// cached is how many ledgers are in memory, and loadErr why one could not be loaded.
func (l *ledgers) cached() (n int, loadErr error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.decider.Cache), l.decider.LoadErr
}

var (
	// ErrNotServing: the partition is not served any more, and its ledgers may be closed.
	ErrNotServing = errors.New("the partition is not served")
	// ErrMoved: since the log grew another partition decides the session.
	ErrMoved = errors.New("another partition decides this session since the log grew")
)

// Inspect shows the ledger of a session to read, under the lock of the ledgers, and returns
// up to which event it holds. read must not keep the ledger. [ErrMoved] from the split on.
func (l *ledgers) Inspect(a events.Address, read func(*compaction.Ledger)) (compaction.Seq, error) {
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
	l.evict() // a question may have brought one back
	return l.decided.seq, nil
}

// moved reports whether another partition decides what comes of a session: its ledger is dropped, or will be. The
// caller holds mu.
func (l *ledgers) moved(a events.Address) bool { return l.table.Of(a) != l.ID || l.set.Of(a) != l.ID }

// lists is [ErrNotServing] where no list can be had of the ledgers. While a split is decided and not stored, the
// sessions of the child would be in none: not in the parent's, and others see no child. The caller holds mu.
func (l *ledgers) lists() error {
	if l.life.phase() != serving || l.table.Newest(l.ID) != l.set.Table().Newest(l.ID) {
		return ErrNotServing
	}
	return nil
}

// overviewBatch is how many sessions are described at once, while an event waits.
const overviewBatch = 64

// Overviews calls fn with every session of the partition that has a turn, in no order. It brings no ledger
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

// overviews calls fn with sessions, a batch after the other.
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
	for i, a := range batch {
		if l.moved(a) {
			continue
		}
		var err error
		if out[i], err = l.decider.Overview(a); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Sessions names at most n sessions of a tenant behind one, in order.
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
