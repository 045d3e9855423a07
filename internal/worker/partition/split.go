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
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/outcomelog"
)

// A growth of the log splits a partition. Its owner stores a marker with the split, decides later events without
// the sessions of the child, and drops their ledgers once the marker is stored. The child's owner restores the
// parent's newest snapshot before it requests the split, and then applies the parent's outcomes up to the split.
// See docs/adr/0060.

// ErrNoSplit: no growth of the log requires a split of the partition.
var ErrNoSplit = errors.New("no growth of the log requires a split of this partition")

// Split divides the partition between two events. The split takes effect once its marker is stored. A repeated
// call does nothing.
func (p *Partition) Split() error {
	if p.life.phase() != serving {
		return ErrNotServing
	}
	return p.intake.split()
}

// split divides the partition after the last decided event.
func (i *intake) split() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	end, split, err := i.ledgers.split()
	if split {
		i.queue.pushAlone(end)
	}
	return err
}

// split gives the child its sessions' events after the last decided one. It returns false if the partition is
// already split for this growth, or still before an earlier split.
func (l *ledgers) split() (_ position, split bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.beforeSplit(l.decided.split) {
		return l.decided, false, nil // the next split comes after that one
	}
	t := l.set.Table()
	if was := l.decided.split; was.Parent == l.ID && was.Child == l.ID+t.Count()/2 {
		return l.decided, false, nil // already split; the marker may not be stored yet
	}
	t, err := t.Split(l.ID, uint64(l.decided.seq)+1)
	if err != nil {
		return l.decided, false, fmt.Errorf("%w: %w", ErrNoSplit, err)
	}
	l.table, l.decided.split = t, t.Newest(l.ID)
	return l.decided, true, nil
}

// beforeSplit reports whether the partition is still before its split: in a truncated log it decides the new
// events up to the split first. The caller holds mu.
func (l *ledgers) beforeSplit(s partitions.Split) bool {
	return s.Parent == l.ID && uint64(l.decided.seq)+1 < s.First
}

// dropped is the progress of dropping the sessions of other partitions.
type dropped struct {
	behind partitions.Split
	last   events.Address // last session of the file that was checked
	all    bool           // every session was checked
	some   bool           // the file may have pages of dropped sessions
}

// dropOthers drops the sessions that moved to another partition by a stored split: a checkpoint from
// before the split still needs their ledgers. It stops at most changed ledgers until the next
// checkpoint. After the last checkpoint the unused pages of the file are overwritten.
func (l *ledgers) dropOthers(behind partitions.Split, most int) error {
	for more := behind != (partitions.Split{}); more; {
		var err error
		if more, err = l.dropSome(behind, most); err != nil {
			return err
		}
	}
	return nil
}

// dropSome drops moved sessions in memory, or among the next idleBatch of the file. It is short, so that events
// wait only briefly for the lock.
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
		if l.set.Of(a) != l.ID { // by the stored splits: l.table may already hold the next one
			l.decider.Reset(a)
			l.dropped.some = true
		}
	}
	return !l.dropped.all, nil
}

// The owner of a partition takes requests to split it on splitSubject. On prepareSubject it takes requests for a
// new snapshot, from which a child begins close to the split.
func splitSubject(id int) string { return events.OwnerSubject(id, "split") }

func prepareSubject(id int) string { return events.OwnerSubject(id, "prepare-split") }

// takeSplits takes requests to split the partition and to prepare a split, until stop is called.
func (p *Partition) takeSplits(ctx context.Context) (stop func(), _ error) {
	split, err := p.set.config.Commit.Subscribe(splitSubject(p.ID), func(*nats.Msg) {
		_ = p.Split() // the child repeats the request until the split is stored
	})
	if err != nil {
		return nil, fmt.Errorf("take requests to split: %w", err)
	}
	prepare, err := p.set.config.Commit.Subscribe(prepareSubject(p.ID), func(m *nats.Msg) {
		if s := p.set.snapshots; s.enabled() {
			s.take(ctx, p.checkpointer, s.minLag())
		}
		_ = m.Respond(nil) // on an error the child's owner continues without it
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

// splitPause is the interval at which a child reads the parent's marker and requests the split.
const splitPause = 50 * time.Millisecond

// awaitSplit finds the split of a child from its parent. The table of SESSIONS may lack it until the growth is
// complete. If the parent is not split yet, awaitSplit restores the parent's snapshot and then requests the split.
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

// beginAt sets the start of the partition: the split of its parent. It returns false while the parent has still to
// decide events that replaced lost ones.
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

// awaitTurn waits until this worker splits off no other partition. The sessions of a child wait from its split until
// it is served; several at once would wait for each other's replays. Until the split the parent decides.
func (r *recovery) awaitTurn(ctx context.Context) error {
	select {
	case r.set.splitting <- struct{}{}:
		r.release = func() { <-r.set.splitting }
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inheritance holds the outcomes that a partition applies in a replay: its own, and those of its ancestors up to
// the splits.
type inheritance struct {
	id     int
	table  partitions.Table
	splits []partitions.Split
	by     map[int]*outcomelog.Index
	whole  bool // the log has all events of the hash
}

// inherit returns the inheritance of a partition after a sequence. Its map has an entry, still nil, for each
// partition whose outcomes are needed.
func inherit(id int, t partitions.Table, after uint64) inheritance {
	h := inheritance{id, t, t.Lineage(id), map[int]*outcomelog.Index{id: nil}, false}
	for _, s := range h.splits {
		if after+1 < s.First {
			h.by[s.Parent] = nil
		}
	}
	return h
}

// of returns the index with the outcomes of an event, or nil if neither the partition nor an ancestor decided
// it. applies is false if the event's session stayed with the parent.
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

// unerased returns false if the log may lack events between a cursor and the marker that are in the hash of the
// partition. A session.forget up to the marker begins a new hash. But the partition may have erased a session by a later
// one, whose outcome OUTCOMES lost, and another partition one with events from before a split. lastErasure returns the
// sequence of the last session.forget of partitions, also of a lost one.
func (s scope) unerased(after uint64, marker measure.Seq, lastErasure func(in []int) (uint64, error)) (bool, error) {
	t := s.set.Table()
	if after+1 >= t.Newest(s.ID).First {
		last, err := lastErasure(t.Sources(s.ID, after))
		return last <= uint64(marker), err
	}
	families := t.Families()
	last, err := lastErasure(families[s.ID%len(families)])
	return last <= after, err
}

// chainAt returns the hash of the events up to the partition's first, 0 for any other position. It takes the hash of
// the ancestor that decided the last of them: a parent that begins at the same event may have a marker from before
// the log was truncated.
func (h *inheritance) chainAt(seq measure.Seq) uint64 {
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

// apply applies an event and its recorded outcomes to l under the config that named returns. It only moves the
// position if the event is of another partition or its session stayed with the parent.
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
	if c := by.Chains[e.Seq]; h.whole && e.Seq >= by.Erased && c != 0 && c != end.chain {
		return applied, errOtherChain
	}
	return applied, nil
}

// compare sets whether replayed events must have the hashes of the markers. whole is false if the log lacks some.
func (h *inheritance) compare(whole bool) {
	h.whole = whole
	for _, by := range h.by {
		h.whole = h.whole && !by.Lost
	}
}

// misses reports whether the ledgers have another hash than the marker at their position.
func (h *inheritance) misses(end, marker position) bool {
	return h.whole && marker.chain != 0 && end.chain != marker.chain
}
