package worker

import (
	"errors"
	"maps"
	"sync"

	"compactd/internal/broker/commit"
	"compactd/internal/compaction"
	"compactd/internal/kv"
	"compactd/internal/worker/observe"
)

// place is the last state of a partition that the listener received.
type place struct {
	served  bool
	cursor  compaction.Seq // committed
	pending uint64         // events behind the last one read, when it was sent
	failed  bool           // it ended with an error, and no worker has taken it over
	full    error          // the store or the disk has no room for what it wants to write
}

// progress keeps the places of all partitions.
type progress struct {
	mu     sync.Mutex // guards places
	places map[int]*place
}

func (p *progress) listener() observe.Listener {
	return observe.Listener{
		PartitionAcquired: func(e observe.PartitionAcquired) {
			p.set(e.Partition, func(at *place) { *at = place{served: true, cursor: e.Cursor} })
		},
		PartitionFailed: func(e observe.PartitionFailed) {
			p.set(e.Partition, func(at *place) { *at = place{failed: true} })
		},
		PartitionReleased: func(e observe.PartitionReleased) {
			failed := e.Err != nil && !errors.Is(e.Err, commit.ErrFenced) // another worker serves it then
			p.set(e.Partition, func(at *place) { *at = place{failed: failed} })
		},
		Applied: func(e observe.Applied) {
			p.set(e.Partition, func(at *place) { at.pending = e.Pending })
		},
		Committed: func(e observe.Committed) {
			p.set(e.Partition, func(at *place) {
				at.cursor = e.Cursor
				if !errors.Is(at.full, kv.ErrFull) {
					at.full = nil
				}
			})
		},
		Checkpointed: func(e observe.Checkpointed) {
			p.set(e.Partition, func(at *place) {
				if errors.Is(at.full, kv.ErrFull) {
					at.full = nil
				}
			})
		},
		Retrying: func(e observe.Retrying) {
			_, full := errors.AsType[*commit.StoreFullError](e.Err)
			if e.Partition >= 0 && (full || errors.Is(e.Err, kv.ErrFull)) {
				p.set(e.Partition, func(at *place) { at.full = e.Err })
			}
		},
	}
}

func (p *progress) set(partition int, change func(*place)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.places[partition]
	if at == nil {
		at = &place{}
		p.places[partition] = at
	}
	change(at)
}

// now returns the places as they are.
func (p *progress) now() map[int]place {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[int]place, len(p.places))
	for id, at := range maps.All(p.places) {
		out[id] = *at
	}
	return out
}
