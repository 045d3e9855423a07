package worker

import (
	"cmp"
	"fmt"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/worker/failpoint"
)

// kept is a ledger in memory.
type cacheEntry struct {
	address events.Address
	ledger  *compaction.Ledger // nil when the session began anew
	used    uint64             // the event that used it last, counted
	weight  int                // bytes it takes, as of then
	dirty   bool               // listed for the next checkpoint
	replace bool               // what is stored of it is of no use
	unsaved bool               // taken for a checkpoint that is not written yet
}

// loader brings back ledgers that left memory.
type loader interface {
	Load(events.Address) ([]compaction.Row, error)
	List(tenant, after string, n int) ([]string, error)
}

// ledger returns the ledger of a session, an empty one that is not kept if it
// has none.
func (d *decider) ledger(a events.Address) (*compaction.Ledger, error) {
	d.clock++
	if k := d.cache[a]; k != nil {
		k.used = d.clock
		if k.ledger == nil {
			return compaction.NewLedger(a), nil
		}
		return k.ledger, nil
	}
	if d.store == nil {
		return compaction.NewLedger(a), nil
	}
	rows, err := d.store.Load(a)
	if err != nil {
		return nil, fmt.Errorf("load ledger: %w", err)
	}
	if rows == nil {
		return compaction.NewLedger(a), nil
	}
	l, err := compaction.Restore(a, rows)
	if err != nil {
		return nil, fmt.Errorf("load ledger: %w: %w", kv.ErrDamaged, err)
	}
	d.cache[a] = &cacheEntry{address: a, ledger: l, used: d.clock}
	d.weigh(d.cache[a])
	return l, nil
}

// keep notes that a ledger changed.
func (d *decider) put(a events.Address, l *compaction.Ledger) {
	k := d.cache[a]
	if k == nil {
		k = &cacheEntry{address: a, used: d.clock}
		d.cache[a] = k
	}
	k.ledger = l
	d.weigh(k)
	d.markDirty(k)
}

// weigh keeps the sum of what the ledgers in memory take.
func (d *decider) weigh(k *cacheEntry) {
	was := k.weight
	k.weight = 0
	if k.ledger != nil {
		k.weight = k.ledger.Weight()
	}
	d.weight += k.weight - was
}

// forget lets a session begin anew.
func (d *decider) reset(a events.Address) {
	k := d.cache[a]
	if k == nil {
		k = &cacheEntry{address: a, used: d.clock}
		d.cache[a] = k
	}
	k.ledger, k.replace = nil, true
	d.weigh(k)
	d.markDirty(k)
}

func (d *decider) markDirty(k *cacheEntry) {
	if !k.dirty && d.store != nil {
		k.dirty = true
		d.dirty = append(d.dirty, k)
	}
}

// collect takes the ledgers that changed since it was last called, as they are
// now: what to write, and whom to call stored for once it is written.
func (d *decider) collect() (changes []kv.Change, written []*cacheEntry, err error) {
	for _, k := range d.dirty {
		k.dirty, k.unsaved = failpoint.ForgetDirty(), true
		written = append(written, k)
		if k.ledger == nil { // it began anew
			changes = append(changes, kv.Change{Address: k.address, Drop: true})
			continue
		}
		rows, err := k.ledger.Rows()
		if err != nil {
			return nil, nil, err
		}
		k.ledger.Stored()
		changes = append(changes, kv.Change{Address: k.address, Rows: rows, Replace: k.replace})
		k.replace = false
	}
	d.dirty, d.events = nil, 0
	return changes, written, nil
}

// stored notes that what collect took is written.
func (d *decider) markStored(written []*cacheEntry) {
	for _, k := range written {
		k.unsaved = false
	}
}

// evict lets ledgers that are stored leave memory, those not used for longest
// first, until at most n are left, which take at most so many bytes.
func (d *decider) evict(n, bytes int) int {
	if d.store == nil || len(d.cache) <= n+n/8 && d.weight <= bytes+bytes/8 { // seldom, and then many: it sorts them all
		return 0
	}
	idle := make([]*cacheEntry, 0, len(d.cache))
	for _, k := range d.cache {
		if !k.dirty && !k.unsaved {
			idle = append(idle, k)
		}
	}
	slices.SortFunc(idle, func(a, b *cacheEntry) int { return cmp.Compare(a.used, b.used) })
	for i, k := range idle {
		if len(d.cache) <= n && d.weight <= bytes {
			return i
		}
		delete(d.cache, k.address)
		d.weight -= k.weight
	}
	return len(idle)
}
