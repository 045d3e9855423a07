package jobs

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
)

// maxHeld and maxHeldBytes limit the jobs of one lane that wait in a worker for a slot of their
// tenant. The worker renews their deliveries.
const (
	maxHeld      = 4096
	maxHeldBytes = 16 << 20
)

// shares holds the use of a lane's slots by tenant.
type shares struct {
	most int

	mu      sync.Mutex // guards the fields below
	working map[string]int
	waiting map[string][]*held
	held    int
	bytes   int // of the held jobs
	ahead   int // number of held jobs that are read ahead
}

// held is a job that waits for a slot of its tenant.
type held struct {
	m    jetstream.Msg
	read *texts // may be nil
}

func newShares(most int) *shares {
	return &shares{most: most, working: map[string]int{}, waiting: map[string][]*held{}}
}

// tenantOf returns the tenant of a job, "" for an unreadable one.
func tenantOf(m jetstream.Msg) string {
	at, _, err := events.ParseJob(m.Subject())
	if err != nil {
		return ""
	}
	return at.Address.Tenant
}

// take takes a slot for a tenant. It returns false if the tenant has no slot left.
func (s *shares) take(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working[tenant] >= s.most {
		return false
	}
	s.working[tenant]++
	return true
}

// hold keeps a job until its tenant has a slot. It returns false if too many jobs are held.
func (s *shares) hold(tenant string, m jetstream.Msg) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := len(m.Data())
	if s.held >= maxHeld || s.held > 0 && s.bytes+size > maxHeldBytes {
		return false
	}
	s.held++
	s.bytes += size
	s.waiting[tenant] = append(s.waiting[tenant], &held{m: m})
	return true
}

// each calls do for each waiting job, under the lock.
func (s *shares) each(do func(jetstream.Msg)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.waiting {
		for _, h := range all {
			do(h.m)
		}
	}
}

// next returns the waiting job that gets the slot of an ended one. Without one it releases the
// slot.
func (s *shares) next(tenant string) (jetstream.Msg, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all := s.waiting[tenant]; len(all) > 0 {
		if s.waiting[tenant] = all[1:]; len(all) == 1 {
			delete(s.waiting, tenant)
		}
		s.held--
		s.bytes -= len(all[0].m.Data())
		if all[0].read != nil {
			s.ahead--
			return &aheadMsg{all[0].m, all[0].read}, true
		}
		return all[0].m, true
	}
	if s.working[tenant]--; s.working[tenant] == 0 {
		delete(s.working, tenant)
	}
	return nil, false
}

// drop removes the waiting jobs, and calls back for each.
func (s *shares) drop(back func(jetstream.Msg)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.waiting {
		for _, h := range all {
			back(h.m)
		}
	}
	clear(s.waiting)
	s.held, s.bytes, s.ahead = 0, 0, 0
}

// share works on a job, and then on the waiting jobs of its tenant, in one slot.
func (p *Pool) share(ctx context.Context, s *shares, tenant string, m jetstream.Msg) {
	for ok := true; ok; {
		p.work(ctx, p.readAhead(ctx, s, tenant, m))
		if ctx.Err() != nil {
			return
		}
		m, ok = s.next(tenant)
	}
}
