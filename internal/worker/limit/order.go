package limit

import "container/heap"

// Kinds of waiting operations. Small ones pass the others.
const (
	smallOnes = iota
	others
)

func (p *pool) kind(n int64) int {
	if n <= p.small {
		return smallOnes
	}
	return others
}

// newOrders returns an order of each kind.
func newOrders() [2]order { return [2]order{{kind: smallOnes}, {kind: others}} }

// order is a heap of the waiting shares, by use and then by name.
type order struct {
	kind   int
	shares []*share
}

func (o *order) Len() int { return len(o.shares) }

func (o *order) Less(i, j int) bool {
	a, b := o.shares[i], o.shares[j]
	return a.used < b.used || a.used == b.used && a.name < b.name
}

func (o *order) Swap(i, j int) {
	o.shares[i], o.shares[j] = o.shares[j], o.shares[i]
	o.shares[i].places[o.kind], o.shares[j].places[o.kind] = i+1, j+1
}

func (o *order) Push(x any) {
	s, _ := x.(*share)
	o.shares = append(o.shares, s)
	s.places[o.kind] = len(o.shares)
}

func (o *order) Pop() any {
	last := len(o.shares) - 1
	s := o.shares[last]
	o.shares[last], o.shares = nil, o.shares[:last]
	s.places[o.kind] = 0
	return s
}

// put adds, moves or removes a share. waits reports whether it belongs into the heap.
func (o *order) put(s *share, waits bool) {
	switch at := s.places[o.kind] - 1; {
	case at < 0 && waits:
		heap.Push(o, s)
	case at >= 0 && waits:
		heap.Fix(o, at)
	case at >= 0:
		heap.Remove(o, at)
	}
}

// first calls fn with the shares in order until it returns true.
func (o *order) first(fn func(*share) bool) {
	var passed []*share
	for found := false; !found && o.Len() > 0; {
		s := o.shares[0]
		if found = fn(s); !found {
			passed = append(passed, s)
			heap.Pop(o)
		}
	}
	for _, s := range passed {
		heap.Push(o, s)
	}
}

// place updates the positions of a tenant and its part in the orders of a kind.
func (p *pool) place(kind int, t, part *share) {
	t.orders[kind].put(part, len(part.queues[kind]) > 0)
	p.orders[kind].put(t, t.orders[kind].Len() > 0)
}

// use adds n to the use of a tenant and its part.
func (p *pool) use(t, part *share, n int64) {
	t.used += n
	part.used += n
	p.place(smallOnes, t, part)
	p.place(others, t, part)
}

// next returns the next part to serve, or nil. It passes only shares that hold something, so its cost does
// not grow with the number of waiting shares.
func (p *pool) next() (kind int, t, part *share) {
	for kind = range p.orders {
		p.orders[kind].first(func(x *share) bool {
			var blocks bool
			if part, blocks = p.nextPart(kind, x); part != nil {
				t = x
			}
			return part != nil || blocks
		})
		if t != nil {
			break
		}
	}
	return kind, t, part
}

// nextPart returns the next part of a tenant to serve, or nil. It blocks other tenants while it waits for free
// resources of the pool, not while its own tenant holds them.
func (p *pool) nextPart(kind int, t *share) (part *share, blocks bool) {
	t.orders[kind].first(func(x *share) bool {
		n := x.queues[kind][0].n
		switch own := p.counted(t, n); {
		case p.fits(t, x, n):
			part = x
		case n > p.free && own == 0:
			blocks = true
		case n <= p.free && own+n <= p.free-n: // the part, not the tenant, is over its share: try the next part
			return false
		}
		return true
	})
	return part, blocks
}
