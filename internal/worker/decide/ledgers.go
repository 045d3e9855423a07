package decide

import (
	"cmp"
	"fmt"
	"slices"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/stored"
	"compactd/internal/worker/failpoint"
)

// Entry is a ledger in memory.
type Entry struct {
	address events.Address
	Ledger  *compaction.Ledger // nil after a reset
	used    uint64             // clock of its last use
	weight  int                // estimated bytes at its last change
	cached  bool               // it is in the cache
	Dirty   bool               // listed for the next checkpoint
	replace bool               // the stored rows are outdated and must be replaced
	unsaved bool               // collected for a checkpoint that is not written yet
}

// Store loads ledgers that left memory.
type Store interface {
	Load(events.Address) ([]compaction.Row, error)
	List(tenant, after string, n int) ([]string, error)
	After(a events.Address, n int) ([]events.Address, error)
	Release() // frees the memory of look-ups
}

// ledger returns the ledger of the entry, or an empty one that is not kept.
func (k *Entry) ledger() *compaction.Ledger {
	if k.Ledger == nil {
		return compaction.NewLedger(k.address)
	}
	return k.Ledger
}

// Ledger returns the ledger of a session, or an empty one that is not kept.
func (d *Decider) Ledger(a events.Address) (*compaction.Ledger, error) {
	k, err := d.entry(a)
	if err != nil {
		return nil, err
	}
	return k.ledger(), nil
}

// entry returns the entry of a session. Without a ledger it returns an empty entry outside of the
// cache.
func (d *Decider) entry(a events.Address) (*Entry, error) {
	d.clock++
	if k := d.Cache[a]; k != nil {
		k.used = d.clock
		return k, nil
	}
	k := &Entry{address: a, used: d.clock}
	if d.Store == nil {
		return k, nil
	}
	rows, err := d.Store.Load(a)
	if err != nil {
		return nil, fmt.Errorf("load ledger: %w", err)
	}
	if rows == nil {
		return k, nil
	}
	if k.Ledger, err = stored.ReadLedger(a, rows); err != nil {
		return nil, fmt.Errorf("load ledger: %w: %w", kv.ErrDamaged, err)
	}
	d.cache(k)
	return k, nil
}

// put stores a changed ledger in its entry.
func (d *Decider) put(k *Entry, l *compaction.Ledger) {
	k.Ledger = l
	d.cache(k)
	d.addDirty(k)
}

// cache puts an entry into the cache, and updates Weight.
func (d *Decider) cache(k *Entry) {
	if !k.cached {
		k.cached = true
		d.Cache[k.address] = k
		delete(d.described, k.address)
	}
	was := k.weight
	k.weight = 0
	if k.Ledger != nil {
		k.weight = k.Ledger.Weight()
	}
	d.Weight += k.weight - was
}

// Reset drops the ledger of a session, which then begins again.
func (d *Decider) Reset(a events.Address) {
	k := d.Cache[a]
	if k == nil {
		k = &Entry{address: a, used: d.clock}
	}
	d.reset(k)
}

// reset is Reset for an entry.
func (d *Decider) reset(k *Entry) {
	k.Ledger, k.replace = nil, true
	d.cache(k)
	d.addDirty(k)
}

func (d *Decider) addDirty(k *Entry) {
	if !k.Dirty && d.Store != nil {
		k.Dirty = true
		d.Dirty = append(d.Dirty, k)
	}
}

// Collect returns the changes of ledgers since its last call, and the entries to pass to
// [Decider.SetStored] after they are written.
func (d *Decider) Collect() (changes []kv.Change, written []*Entry, err error) {
	for _, k := range d.Dirty {
		k.Dirty, k.unsaved = failpoint.SkipDirty(), true
		written = append(written, k)
		if k.Ledger == nil { // reset
			changes = append(changes, kv.Change{Address: k.address, Drop: true})
			continue
		}
		rows, err := stored.Rows(k.Ledger)
		if err != nil {
			return nil, nil, err
		}
		k.Ledger.Stored()
		changes = append(changes, kv.Change{Address: k.address, Rows: rows, Replace: k.replace})
		k.replace = false
	}
	d.Dirty, d.Events = nil, 0
	return changes, written, nil
}

// SetStored marks entries of Collect as written.
func (d *Decider) SetStored(written []*Entry) {
	for _, k := range written {
		k.unsaved = false
	}
}

// Evict removes stored ledgers from memory, the least recently used first, until at most n with at
// most bytes are left.
func (d *Decider) Evict(n, bytes int) int {
	if d.Store == nil || len(d.Cache) <= n+n/8 && d.Weight <= bytes+bytes/8 { // the margin makes evictions rare: each sorts all entries
		return 0
	}
	idle := make([]*Entry, 0, len(d.Cache))
	for _, k := range d.Cache {
		if !k.Dirty && !k.unsaved {
			idle = append(idle, k)
		}
	}
	slices.SortFunc(idle, func(a, b *Entry) int { return cmp.Compare(a.used, b.used) })
	for i, k := range idle {
		if len(d.Cache) <= n && d.Weight <= bytes {
			return i
		}
		delete(d.Cache, k.address)
		d.Weight -= k.weight
	}
	return len(idle)
}

// EvictUnused removes every stored ledger from memory if none was used since its last call. It frees
// the buffers too.
func (d *Decider) EvictUnused() {
	unused := d.clock == d.seen
	if d.seen = d.clock; !unused || d.Store == nil {
		return
	}
	d.shrink()
	stay := map[events.Address]*Entry{} // an emptied map would not shrink
	d.Weight = 0
	for a, k := range d.Cache {
		if k.Dirty || k.unsaved {
			stay[a] = k
			d.Weight += k.weight
		}
	}
	d.Cache = stay
	d.Store.Release()
}

// shrink frees the buffers of the last event.
func (d *Decider) shrink() {
	d.decoder, d.turn, d.next = events.Decoder{}, compaction.Turn{}, compaction.Next{}
}

// Sessions returns at most n sessions of a tenant after one, in order, from memory and from the
// store.
func (d *Decider) Sessions(tenant, after string, n int) ([]string, error) {
	var names []string
	ended := map[string]bool{} // still in the store
	for a, k := range d.Cache {
		if a.Tenant != tenant || a.Session <= after {
			continue
		}
		if k.Ledger != nil && k.Ledger.HasTurns() {
			names = append(names, a.Session)
		} else {
			ended[a.Session] = true
		}
	}
	if d.Store != nil {
		stored, err := d.Store.List(tenant, after, n+len(ended))
		if err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		for _, name := range stored {
			if !ended[name] {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(n, len(names))], nil
}

// maxDescribed limits the cached overviews of sessions outside of memory.
const maxDescribed = 5000

// Overview describes a session under a config, without putting its ledger into the cache. It caches the
// overview: a session outside of memory does not change.
func (d *Decider) Overview(a events.Address, c *compaction.Config) (compaction.Overview, error) {
	if k := d.Cache[a]; k != nil {
		return k.ledger().Describe(c), nil
	}
	if d.describedUnder != c {
		clear(d.described)
		d.describedUnder = c
	}
	if o, ok := d.described[a]; ok || d.Store == nil {
		return o, nil
	}
	rows, err := d.Store.Load(a)
	if err != nil || rows == nil {
		return compaction.Overview{}, err
	}
	l, err := stored.ReadLedger(a, rows)
	if err != nil {
		return compaction.Overview{}, fmt.Errorf("load ledger: %w: %w", kv.ErrDamaged, err)
	}
	o := l.Describe(c)
	if len(d.described) < maxDescribed {
		d.described[a] = o
	}
	return o, nil
}
