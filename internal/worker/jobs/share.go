package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
)

const (
	// maxHeld bounds the jobs of one lane that wait in a worker for a slot of their
	// tenant, and that give signs of life while they do.
	maxHeld = 64
	// heldPause is how long a job rests that a worker cannot hold as well. It uses
	// up a delivery: a tenant with so many jobs harms itself first.
	heldPause = 30 * time.Second
)

// shares are the slots of one lane by tenant.
type shares struct {
	most int

	mu      sync.Mutex // guards the fields below
	working map[string]int
	waiting map[string][]*held
	held    int
	ahead   int // of those held: read ahead, or being read
}

// held is a job that waits for a slot of its tenant.
type held struct {
	m    jetstream.Msg
	stop func() // ends its signs of life
	read *texts // nil for none
}

func newShares(most int) *shares {
	return &shares{most: most, working: map[string]int{}, waiting: map[string][]*held{}}
}

// tenantOf is the tenant of a job; what cannot be read belongs to "".
func tenantOf(m jetstream.Msg) string {
	at, _, err := events.ParseJob(m.Subject())
	if err != nil {
		return ""
	}
	return at.Address.Tenant
}

// take reports whether a tenant has a slot left, and takes it.
func (s *shares) take(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working[tenant] >= s.most {
		return false
	}
	s.working[tenant]++
	return true
}

// hold keeps a job until its tenant has a slot, unless too many are held. keep
// starts the signs of life of a job.
func (s *shares) hold(tenant string, m jetstream.Msg, keep func() (stop func())) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held >= maxHeld {
		return false
	}
	s.held++
	s.waiting[tenant] = append(s.waiting[tenant], &held{m: m, stop: keep()})
	return true
}

// next is the job that gets the slot of one that ended; without one the slot is
// given up.
func (s *shares) next(tenant string) (jetstream.Msg, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all := s.waiting[tenant]; len(all) > 0 {
		if s.waiting[tenant] = all[1:]; len(all) == 1 {
			delete(s.waiting, tenant)
		}
		s.held--
		all[0].stop()
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

// drop gives up the jobs that wait, and calls back for each.
func (s *shares) drop(back func(jetstream.Msg)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.waiting {
		for _, h := range all {
			h.stop()
			back(h.m)
		}
	}
	clear(s.waiting)
	s.held, s.ahead = 0, 0
}

// share works on a job, and then on those of its tenant that wait, in one slot.
func (p *Pool) share(ctx context.Context, s *shares, tenant string, m jetstream.Msg) {
	for ok := true; ok; {
		p.work(ctx, p.readAhead(ctx, s, tenant, m))
		if ctx.Err() != nil {
			return
		}
		m, ok = s.next(tenant)
	}
}
