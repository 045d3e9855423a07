package partition

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"compactd/internal/events"
	"compactd/internal/events/partitions"
)

// A growth of the log splits a partition: its owner stores a marker alone that names the split, decides what follows
// without the sessions of the child, and drops their ledgers once the marker is stored. See docs/adr/0060.

// ErrNoSplit: the partition is not to be split now.
var ErrNoSplit = errors.New("the partition cannot be split: no growth of the log is under way that it has not been split for")

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

// dropped is how far the sessions of others are dropped.
type dropped struct {
	behind partitions.Split
	last   events.Address // of the file that was looked at
	all    bool
	some   bool // and the file has pages of theirs
}

// dropOthers drops sessions whose next event another partition decides, behind a split that is stored: a checkpoint at
// its position may be one of before, and then an event up to it would find no ledger. At most so many
// are dropped before the next checkpoint; the last one has the pages of the file overwritten.
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
