package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/outcomelog"
)

// A growth of the log splits a partition: its owner stores a marker alone that names the split, decides what follows
// without the sessions of the child, and drops their ledgers once the marker is stored. The child's owner has the
// parent's newest snapshot before it requests that, and then applies what the parent decided up to the
// split. See docs/adr/0060.

// ErrNoSplit: the partition is not to be split now.
var ErrNoSplit = errors.New("this worker has no growth of the log that the partition is still to be split for")

// Split divides the partition between two events. The split holds once its marker is stored. It may be repeated.
func (p *Partition) Split() error {
	if p.life.phase() != serving {
		return ErrNotServing
	}
	return p.intake.split()
}

// split divides the partition behind the last event that is queued.
func (i *intake) split() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	end, split, err := i.ledgers.split()
	if split {
		i.queue.pushAlone(end)
	}
	return err
}

// split gives the child the events behind the last one. It is false where the partition is split for this growth.
func (l *ledgers) split() (_ position, split bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.beforeSplit(l.decided.split) {
		return l.decided, false, nil // it comes behind that one
	}
	t := l.set.Table()
	if was := l.decided.split; was.Parent == l.ID && was.Child == l.ID+t.Count()/2 {
		return l.decided, false, nil // and perhaps not stored yet
	}
	t, err := t.Split(l.ID, uint64(l.decided.seq)+1)
	if err != nil {
		return l.decided, false, fmt.Errorf("%w: %w", ErrNoSplit, err)
	}
	l.table, l.decided.split = t, t.Newest(l.ID)
	return l.decided, true, nil
}

// beforeSplit reports whether the partition is to decide events from before its split: those that took the place of
// others in a log that was truncated. The caller holds mu.
func (l *ledgers) beforeSplit(s partitions.Split) bool {
	return s.Parent == l.ID && uint64(l.decided.seq)+1 < s.First
}

// dropped is how far the sessions of others are dropped.
type dropped struct {
	behind partitions.Split
	last   events.Address // of the file that was looked at
	all    bool
	some   bool // and the file has pages of theirs
}

// dropOthers drops the sessions that moved to another partition. It waits until the split is stored, since
// a checkpoint from before still needs their ledgers. At most so many are dropped before the next
// checkpoint. With the last one the pages of the file are overwritten.
func (l *ledgers) dropOthers(behind partitions.Split, most int) error {
	for more := behind != (partitions.Split{}); more; {
		var err error
		if more, err = l.dropSome(behind, most); err != nil {
			return err
		}
	}
	return nil
}

// dropSome drops those in memory, or of the next sessions of the file, so that an event need not wait for long.
func (l *ledgers) dropSome(behind partitions.Split, most int) (more bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, store := []events.Address(nil), l.decider.Store
	switch {
	case l.beforeSplit(behind):
		return false, nil
	case l.dropped.behind != behind:
		l.dropped = dropped{behind: behind, all: store == nil}
		found = slices.SortedFunc(maps.Keys(l.decider.Cache), func(a, b events.Address) int { return cmp.Compare(a.String(), b.String()) })
	case l.dropped.all || len(l.decider.Dirty) >= most:
		return false, nil
	default:
		var err error
		if found, err = store.After(l.dropped.last, idleBatch); err != nil {
			return false, err
		}
		if len(found) > 0 {
			l.dropped.last = found[len(found)-1]
		}
		l.dropped.all = len(found) < idleBatch
	}
	for _, a := range found {
		if l.set.Of(a) != l.ID { // by what is stored: the next split may be decided
			l.decider.Reset(a)
			l.dropped.some = true
		}
	}
	return !l.dropped.all, nil
}

// splitSubject is where the owner of a partition takes the request to split it, and prepareSubject that to have a
// snapshot that a child begins close to the split from.
func splitSubject(id int) string { return events.OwnerSubject(id, "split") }

func prepareSubject(id int) string { return events.OwnerSubject(id, "prepare-split") }

// takeSplits takes requests to split the partition, and to prepare that, until stop is called.
func (p *Partition) takeSplits(ctx context.Context) (stop func(), _ error) {
	split, err := p.set.config.Commit.Subscribe(splitSubject(p.ID), func(*nats.Msg) {
		_ = p.Split() // it is requested again until it is stored, also of an owner that is to learn of the growth
	})
	if err != nil {
		return nil, fmt.Errorf("take requests to split: %w", err)
	}
	prepare, err := p.set.config.Commit.Subscribe(prepareSubject(p.ID), func(m *nats.Msg) {
		if s := p.set.snapshots; s.enabled() {
			s.take(ctx, p.checkpointer, s.minLag())
		}
		_ = m.Respond(nil) // the child's owner goes on without it
	})
	if err != nil {
		_ = split.Unsubscribe()
		return nil, fmt.Errorf("take requests to prepare a split: %w", err)
	}
	return func() {
		_ = split.Unsubscribe() // fails only on a closed connection
		_ = prepare.Unsubscribe()
	}, nil
}

// splitPause is how often the parent's marker is looked at for the split, and that requested.
const splitPause = 50 * time.Millisecond

// awaitSplit is for a partition that was split off, or is to be. It finds the split, which the table of SESSIONS may
// lack until the growth is complete; until there is one it requests it, with the parent's snapshot at hand.
func (r *recovery) awaitSplit(ctx context.Context) error {
	lineage := r.set.Table().Lineage(r.ID)
	if len(lineage) == 0 {
		return nil
	}
	parent := lineage[len(lineage)-1].Parent
	prepared := false
	return retry.Every(splitPause).Until(ctx, func() (bool, error) {
		m, err := commit.LastMarker(ctx, r.set.config.Read, parent)
		if err == nil {
			err = r.set.learn(m.Split)
		}
		if err != nil {
			return false, err
		}
		lineage = r.set.Table().Lineage(r.ID)
		split := lineage[len(lineage)-1]
		if split.First > 0 {
			if m.Cursor+1 < split.First {
				return false, nil
			}
			return r.beginAt(ctx, split, m.Marker)
		}
		if !prepared {
			prepared = true
			if err := r.awaitTurn(ctx); err != nil {
				return false, err
			}
			if err := r.prepare(ctx, parent); err != nil {
				return false, err
			}
		}
		return false, r.set.config.Commit.Publish(splitSubject(parent), nil)
	})
}

// beginAt has the partition begin where its parent, which is at a marker, was split. It is false where the log has lost
// events of that: until the parent has decided what took their place.
func (r *recovery) beginAt(ctx context.Context, split partitions.Split, parent commit.Marker) (ok bool, err error) {
	if r.log, err = topology.State(ctx, r.set.js, topology.LogStream); err != nil {
		return false, err
	}
	if ok, err = r.hasEventOf(ctx, parent); !ok || err != nil {
		return false, err
	}
	r.begins = commit.Marker{Cursor: split.First - 1, Epoch: parent.Epoch, LogCreated: parent.LogCreated, Split: split}
	if r.begins.Cursor == 0 {
		return true, nil
	}
	at, err := r.eventAt(ctx, r.begins.Cursor)
	if err == nil && at != nil {
		r.begins.LastTime = at.Time.UnixMilli()
	}
	return err == nil, err
}

// awaitTurn waits until no other partition of this worker is being split off: from a split until the child is served its
// sessions wait, and all at once would wait for each other's replays. Until then their parents decide.
func (r *recovery) awaitTurn(ctx context.Context) error {
	select {
	case r.set.splitting <- struct{}{}:
		r.release = func() { <-r.set.splitting }
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inheritance is what a partition applies in a replay: its own outcomes, and those of the partitions that it was
// split off from, up to the splits.
type inheritance struct {
	id     int
	table  partitions.Table
	splits []partitions.Split
	by     map[int]*outcomelog.Index
	whole  bool // the log has all events that are in the hash
}

// inherit is the inheritance of a partition behind a sequence, with an index for each that has a part of it.
func inherit(id int, t partitions.Table, after uint64) inheritance {
	h := inheritance{id, t, t.Lineage(id), map[int]*outcomelog.Index{id: nil}, false}
	for _, s := range h.splits {
		if after+1 < s.First {
			h.by[s.Parent] = nil
		}
	}
	return h
}

// of returns what is recorded about an event; nil where it is no event of this partition, or of those before it.
// One of a session that stayed with them does not apply.
func (h *inheritance) of(e decide.Event) (by *outcomelog.Index, applies bool) {
	p := h.table.At(e.Address, uint64(e.Seq))
	if p == h.id {
		return h.by[p], true
	}
	if !slices.ContainsFunc(h.splits, func(s partitions.Split) bool { return s.Parent == p && uint64(e.Seq) < s.First }) {
		return nil, false
	}
	return h.by[p], h.splits[len(h.splits)-1].Moves(e.Address)
}

// unerased is false where events behind a cursor may be gone that are in the hash of the partition: those from before a
// split, of a session that another partition has erased since.
func (s scope) unerased(after uint64, lastForget func(in []int) (uint64, error)) (bool, error) {
	t := s.set.Table()
	if after+1 >= t.Newest(s.ID).First {
		return true, nil
	}
	families := t.Families()
	last, err := lastForget(families[s.ID%len(families)])
	return last <= after, err
}

// chainAt is the hash of the events up to where the partition begins, 0 for another place. It is the one of who decided
// the last of them: a parent that begins there too may have a marker from before the log was truncated.
func (h *inheritance) chainAt(seq compaction.Seq) uint64 {
	n := len(h.splits)
	if n == 0 || uint64(seq)+1 != h.splits[n-1].First {
		return 0
	}
	i := slices.IndexFunc(h.splits, func(s partitions.Split) bool { return uint64(seq) < s.First })
	if by := h.by[h.splits[i].Parent]; by != nil {
		return by.Chains[seq]
	}
	return 0
}

// apply applies an event to ledgers as its partition decided it, under the config that named returns, or passes it.
func (h *inheritance) apply(l *ledgers, e decide.Event, at time.Time, named func(hash string) (*compaction.Config, error), report func(error)) (applied bool, _ error) {
	by, applied := h.of(e)
	if by == nil {
		l.skip(e, at)
		return false, nil
	}
	var end position
	if !applied {
		end = l.pass(e, at)
	} else {
		config, err := named(by.ConfigAt(e.Seq))
		if err != nil {
			return false, err
		}
		if end, err = l.applyRecorded(e, at, config, by.Outcomes[e.Seq], report); err != nil {
			return false, err
		}
		delete(by.Outcomes, e.Seq)
	}
	if c := by.Chains[e.Seq]; h.whole && c != 0 && c != end.chain {
		return applied, errOtherChain
	}
	return applied, nil
}

// misses reports whether ledgers at a position have another hash than the marker that they are to be at.
func (h *inheritance) misses(end, marker position) bool {
	return h.whole && marker.chain != 0 && end.chain != marker.chain
}
