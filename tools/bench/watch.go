package main

import (
	"sync"
	"sync/atomic"

	"compactd/internal/worker/observe"
)

// watch follows a worker until it has decided n turns and stored all their outcomes.
type watch struct {
	n    int64
	done chan struct{}
	once sync.Once

	applied, emitted, stored    atomic.Int64
	bytes, commits, checkpoints atomic.Int64
	replayed                    atomic.Int64 // events that a start read again
}

func newWatch(n int) *watch { return &watch{n: int64(n), done: make(chan struct{})} }

func (w *watch) listener() observe.Listener {
	return observe.Listener{
		Applied: func(f observe.Applied) {
			w.emitted.Add(int64(f.Outcomes)) // before applied: at the last turn it is whole
			if w.applied.Add(1) >= w.n {
				w.check()
			}
		},
		Committed: func(c observe.Committed) {
			if c.Outcomes == 0 {
				return
			}
			w.bytes.Add(int64(c.Bytes))
			w.commits.Add(1)
			w.stored.Add(int64(c.Outcomes))
			w.check()
		},
		PartitionAcquired: func(a observe.PartitionAcquired) { w.replayed.Add(int64(a.Replayed)) },
		Checkpointed:      func(observe.Checkpointed) { w.checkpoints.Add(1) },
	}
}

func (w *watch) check() {
	if w.applied.Load() >= w.n && w.stored.Load() == w.emitted.Load() {
		w.once.Do(func() { close(w.done) })
	}
}
