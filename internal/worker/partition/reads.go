package partition

import (
	"errors"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// ErrNotServing: the partition has stopped, and its ledgers may be closed.
var ErrNotServing = errors.New("the partition is not served")

// Inspect shows the ledger of a session to read, under the lock of the partition, and
// returns up to which event it holds. read must not keep the ledger.
func (p *Partition) Inspect(a events.Address, read func(*compaction.Ledger)) (compaction.Seq, error) {
	p.state.Lock()
	defer p.state.Unlock()
	if p.isStopped() { // what it loads ledgers from may be closed
		return 0, ErrNotServing
	}
	l, err := p.decider.Ledger(a)
	if err != nil {
		return 0, err
	}
	read(l)
	p.evict() // a question may have brought one back
	return p.decided.seq, nil
}

// Sessions names at most n sessions of a tenant behind one, in order.
func (p *Partition) Sessions(tenant, after string, n int) ([]string, error) {
	p.state.Lock()
	defer p.state.Unlock()
	if p.isStopped() {
		return nil, ErrNotServing
	}
	return p.decider.Sessions(tenant, after, n)
}

// isStopped reports whether the partition takes no more events.
func (p *Partition) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// HasCommitted reports whether every outcome for a that an event up to seq led to is
// committed.
func (p *Partition) HasCommitted(a events.Address, seq compaction.Seq) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end.seq < seq {
		return false // decided, and not queued yet
	}
	for _, g := range p.queue {
		if g.end.seq > seq {
			break
		}
		for _, o := range g.outcomes {
			if o.address == a {
				return false
			}
		}
	}
	return true
}

// waiters is what requests about one session wait on.
type waiters struct {
	moved chan struct{} // closed with the next event of the session
	n     int           // requests
}

// Await registers a request that waits for events of a session; drop ends that. moved
// is closed with the next event.
func (p *Partition) Await(a events.Address) (moved <-chan struct{}, drop func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	on := p.waiters[a]
	if on == nil {
		on = &waiters{moved: make(chan struct{})}
		p.waiters[a] = on
	}
	on.n++
	return on.moved, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if on.n--; on.n == 0 && p.waiters[a] == on {
			delete(p.waiters, a)
		}
	}
}

// wakeAwaiting lets the requests go on that wait for a session. The caller holds p.mu.
func (p *Partition) wakeAwaiting(a events.Address) {
	if on := p.waiters[a]; on != nil {
		close(on.moved)
		delete(p.waiters, a)
	}
}
