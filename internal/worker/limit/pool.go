package limit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Account identifies the owner of an operation: a tenant, and a part of it such as a token or a session. An
// empty part has no limit of its own.
type Account struct{ Tenant, Part string }

// Partitions is the account of work that events of all tenants wait for. A quarter of its use counts.
var Partitions = Account{Tenant: "*partitions"}

// One partitionsCount-th of the use of [Partitions] counts.
const partitionsCount = 4

// pool holds the resources of a class.
type pool struct {
	size  int64
	small int64 // an operation of at most this size passes larger waiting ones
	floor bool  // a tenant takes at most as much as it leaves free
	timed bool  // use is counted in time × units, else in units

	onWait   func(time.Duration, error)
	onRefuse func()
	onChange func(held int64) // may be nil; called with mu locked

	mu      sync.Mutex // guards the fields below
	free    int64
	now     int64 // virtual time: the use of the tenant served last
	tenants map[string]*share
	waiting int
	orders  [2]order // of tenants with waiting operations, by kind
}

// share is the state of a tenant in a pool, or of a part of a tenant.
type share struct {
	name    string
	held    int64
	large   int64 // the part of held in leases that are not small
	used    int64 // virtual time, in the pool's units
	waiting int
	parts   map[string]*share // only of a tenant
	now     int64             // virtual time among the parts
	orders  [2]order          // of the waiting parts, by kind
	queues  [2][]*waiter      // only of a part
	places  [2]int            // positions in the orders above, from 1; 0 if absent
}

// waiter is a waiting operation.
type waiter struct {
	n     int64
	ready chan struct{}
	took  lease
}

// lease is an amount of a pool that an operation holds.
type lease struct {
	pool   *pool
	of     Account
	tenant *share
	part   *share
	n      int64
	large  bool
	since  time.Time
}

func newPool(size, small int64, floor, timed bool) *pool {
	return &pool{size: size, small: small, floor: floor, timed: timed, free: size, tenants: map[string]*share{}, orders: newOrders()}
}

// partShares: a part takes at most partShares times what it leaves of the tenant's share.
const partShares = 3

// fits reports whether a tenant may take n now.
func (p *pool) fits(t, part *share, n int64) bool {
	own, ofPart := p.counted(t, n), p.counted(part, n)
	switch {
	case n > p.free:
		return false
	case !p.floor || own == 0:
		return true
	case own+n > p.free-n:
		return false
	case part.name == "" || ofPart == 0:
		return true
	}
	most := (own + p.free) / 2 // the tenant's share at the present use of others
	return ofPart+n <= partShares*(most-own-n)
}

// counted returns the part of a share's held amount that counts against n more. For a small n only small
// leases count. A large n counts nothing if the share has no large lease yet.
func (p *pool) counted(s *share, n int64) int64 {
	switch {
	case n <= p.small:
		return s.held - s.large
	case s.large == 0:
		return 0
	}
	return s.held
}

// add changes the held amounts by n.
func (p *pool) add(l *lease, n int64) {
	p.free -= n
	for _, s := range []*share{l.tenant, l.part} {
		if s.held += n; l.large {
			s.large += n
		}
	}
	if p.onChange != nil {
		p.onChange(p.size - p.free)
	}
}

// try takes n if it is available at once.
func (p *pool) try(of Account, n int64) (lease, bool) {
	n = min(n, p.most())
	p.mu.Lock()
	defer p.mu.Unlock()
	t, part := p.of(of)
	if (p.waiting == 0 || n <= p.small) && p.fits(t, part, n) {
		return p.grant(of, t, part, n), true
	}
	p.drop(of, t, part)
	return lease{}, false
}

// most returns the largest lease: half of a pool with a floor.
func (p *pool) most() int64 {
	if p.floor {
		return max(p.size/2, 1)
	}
	return p.size
}

// take waits for n until ctx ends, and then returns the cause. If too many operations wait, it returns ErrBusy.
func (p *pool) take(ctx context.Context, of Account, n int64) (lease, error) {
	if got, ok := p.try(of, n); ok {
		return got, nil
	}
	began := time.Now()
	w := p.enqueue(of, min(n, p.most()))
	if w == nil {
		p.onRefuse()
		return lease{}, ErrBusy
	}
	var err error
	select {
	case <-w.ready:
	case <-ctx.Done():
		if p.leave(of, w) {
			err = context.Cause(ctx)
		}
	}
	p.onWait(time.Since(began), err)
	return w.took, err
}

// mostWaiting limits the operations that wait for a pool. A tenant has at most as many of them as
// it leaves to others.
const mostWaiting = 8192

// enqueue adds a waiter and serves the next ones. It returns nil if too many operations wait.
func (p *pool) enqueue(of Account, n int64) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, part := p.of(of)
	if left := mostWaiting - p.waiting; left <= 0 || t.waiting > 0 && t.waiting >= left {
		p.drop(of, t, part)
		return nil
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	p.wake(t, part)
	k := p.kind(n)
	part.queues[k] = append(part.queues[k], w)
	p.count(t, part, 1)
	p.place(k, t, part)
	p.serve()
	return w
}

// leave removes a waiter; false means that it was served.
func (p *pool) leave(of Account, w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, part := p.of(of)
	k := p.kind(w.n)
	at := slices.Index(part.queues[k], w)
	if at >= 0 {
		part.queues[k] = slices.Delete(part.queues[k], at, at+1)
		p.count(t, part, -1)
		p.place(k, t, part)
	}
	p.drop(of, t, part)
	if at >= 0 {
		p.serve() // the waiter may have blocked others
	}
	return at >= 0
}

// wake raises the use of an idle share to the virtual time, so that it does not overtake all others.
func (p *pool) wake(t, part *share) {
	if t.waiting == 0 && t.held == 0 {
		t.used = max(t.used, p.now)
	}
	if part.waiting == 0 && part.held == 0 {
		part.used = max(part.used, t.now)
	}
}

func (p *pool) count(t, part *share, n int) {
	part.waiting += n
	t.waiting += n
	p.waiting += n
}

// serve grants free resources to waiting operations, in turn.
func (p *pool) serve() {
	for p.waiting > 0 && p.free > 0 {
		k, t, part := p.next()
		if t == nil {
			return
		}
		w := part.queues[k][0]
		part.queues[k] = part.queues[k][1:]
		p.count(t, part, -1)
		w.took = p.grant(Account{t.name, part.name}, t, part, w.n)
		p.place(k, t, part)
		close(w.ready)
	}
}

func (p *pool) grant(of Account, t, part *share, n int64) lease {
	p.wake(t, part)
	p.now, t.now = max(p.now, t.used), max(t.now, part.used)
	out := lease{pool: p, of: of, tenant: t, part: part, n: n, large: n > p.small}
	p.add(&out, n)
	if p.timed {
		out.since = time.Now()
	} else {
		p.use(t, part, n)
	}
	return out
}

// shrink releases all but n. A lease of nothing is released: the pool drops shares that hold nothing.
func (l *lease) shrink(n int64) {
	if n == 0 {
		l.release()
		return
	}
	if l.pool == nil || n >= l.n {
		return
	}
	p := l.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(l, n-l.n)
	l.n = n
	p.serve()
}

// release releases the lease. It may be called again.
func (l *lease) release() {
	p := l.pool
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.pool = nil
	if p.timed {
		n := l.n * int64(time.Since(l.since))
		if l.of == Partitions {
			n /= partitionsCount
		}
		p.use(l.tenant, l.part, n)
	}
	p.add(l, -l.n)
	l.n = 0
	p.drop(l.of, l.tenant, l.part)
	p.serve()
}

// of returns the shares of an account, and creates missing ones.
func (p *pool) of(a Account) (t, part *share) {
	if t = p.tenants[a.Tenant]; t == nil {
		t = &share{name: a.Tenant, used: p.now, parts: map[string]*share{}, orders: newOrders()}
		p.tenants[a.Tenant] = t
	}
	if part = t.parts[a.Part]; part == nil {
		part = &share{name: a.Part, used: t.now}
		t.parts[a.Part] = part
	}
	return t, part
}

// The pool remembers the use of idle tenants, up to mostIdle, and up to mostParts of the parts of
// each.
const (
	mostIdle  = 1024
	mostParts = 16
)

// drop removes idle shares whose use no longer counts.
func (p *pool) drop(a Account, t, part *share) {
	if t.parts[a.Part] == part && part.held == 0 && part.waiting == 0 && (part.used <= t.now || len(t.parts) > mostParts) {
		delete(t.parts, a.Part)
	}
	if p.tenants[a.Tenant] != t || t.held > 0 || t.waiting > 0 {
		return
	}
	if len(t.parts) > mostParts {
		clear(t.parts)
	}
	if t.used <= p.now || len(p.tenants) > mostIdle {
		delete(p.tenants, a.Tenant)
	}
}
