package workertest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"compactd/internal/broker/retry"
	"compactd/internal/worker/observe"
)

// Ownership records which partitions each worker of a test serves.
type Ownership struct {
	t    *testing.T
	more chan struct{}

	Mu          sync.Mutex // guards the fields below
	Held        map[string]map[int]bool
	Acquired    map[string][]observe.PartitionAcquired
	Released    map[string][]observe.PartitionReleased
	Quarantined []error
}

// Listener records what the worker of a name acquires and releases.
func (owners *Ownership) Listener(name string) observe.Listener {
	owners.Record(func() { owners.Held[name] = map[int]bool{} })
	return observe.Listener{
		PartitionAcquired: func(e observe.PartitionAcquired) {
			owners.Record(func() { owners.Held[name][e.Partition], owners.Acquired[name] = true, append(owners.Acquired[name], e) })
		},
		PartitionFailed: func(e observe.PartitionFailed) {
			owners.Record(func() {
				delete(owners.Held[name], e.Partition)
				owners.Released[name] = append(owners.Released[name], observe.PartitionReleased{Partition: e.Partition, Err: e.Err})
			})
		},
		PartitionReleased: func(e observe.PartitionReleased) {
			owners.Record(func() {
				delete(owners.Held[name], e.Partition)
				owners.Released[name] = append(owners.Released[name], e)
			})
		},
		Quarantined: func(e observe.Quarantined) {
			owners.Record(func() { owners.Quarantined = append(owners.Quarantined, e.Reason) })
		},
	}
}

// Record calls f under the lock.
func (owners *Ownership) Record(f func()) {
	owners.Mu.Lock()
	defer owners.Mu.Unlock()
	f()
	retry.Wake(owners.more)
}

// Await waits until every worker serves as many partitions as want lists.
func (owners *Ownership) Await(want map[string]int) {
	owners.t.Helper()
	owners.Until(fmt.Sprint(want), func() bool {
		for name, n := range want {
			if len(owners.Held[name]) != n {
				return false
			}
		}
		return true
	})
}

// Both lists the partitions that two workers hold: those of a hand-over that is under way.
func (owners *Ownership) Both(one, other string) (out []int) {
	owners.Mu.Lock()
	defer owners.Mu.Unlock()
	for id := range owners.Held[one] {
		if owners.Held[other][id] {
			out = append(out, id)
		}
	}
	return out
}

// Until waits until ok returns true; ok is called under the lock.
func (owners *Ownership) Until(what string, ok func() bool) {
	owners.t.Helper()
	deadline := time.After(WaitLimit)
	for {
		owners.Mu.Lock()
		done, held := ok(), fmt.Sprint(owners.Held)
		owners.Mu.Unlock()
		if done {
			return
		}
		select {
		case <-owners.more:
		case <-deadline:
			owners.t.Fatalf("the workers serve %s; waiting for %s", held, what)
		}
	}
}

// NewOwnership records nothing before a worker has its listener.
func NewOwnership(t *testing.T) *Ownership {
	return &Ownership{
		t: t, more: make(chan struct{}, 1), Held: map[string]map[int]bool{},
		Acquired: map[string][]observe.PartitionAcquired{}, Released: map[string][]observe.PartitionReleased{},
	}
}
