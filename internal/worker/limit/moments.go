package limit

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// moments is how long tenants compute in [Quick]: a small request may cost as much as a large one. A tenant
// that used its part of the processors computes in [Processor] instead, while other tenants compute too.
type moments struct {
	used rates // in microseconds

	mu      sync.Mutex // guards the fields below
	last    string     // the tenant that computed last
	at      time.Time  // when it did
	changed time.Time  // when another one did within [together] of that, last
}

// momentsPart is the part of all processors, one of so many, that a tenant has for small requests.
const momentsPart = 16

// together is how long two tenants count as computing at once.
const together = time.Second

func newMoments() moments {
	perSecond := runtime.GOMAXPROCS(0) * int(time.Second/time.Microsecond) / momentsPart
	return moments{used: rates{each: rate.Limit(perSecond), burst: perSecond}}
}

// Spent reports whether the tenant of an operation computed for long in [Quick] while others did, or others for it.
func (o *Operation) Spent() bool {
	return o != nil && o.limiter.moments.spent(o.of.Tenant, time.Now())
}

// Spend counts a time that was computed for a tenant outside of its operations, as that of a decision.
// A nil limiter has no limits.
func (l *Limiter) Spend(tenant string, d time.Duration) {
	if l != nil {
		l.moments.spend(tenant, d, time.Now())
	}
}

// spent reports whether a tenant, which computes now, has to wait its turn.
func (m *moments) spent(tenant string, now time.Time) bool {
	m.mu.Lock()
	if m.last != tenant && now.Sub(m.at) <= together {
		m.changed = now
	}
	m.last, m.at = tenant, now
	alone := now.Sub(m.changed) > together
	m.mu.Unlock()
	return !alone && m.used.of(tenant).TokensAt(now) <= 0
}

// spend counts a time of a tenant. It owes at most as much as it gets in a second.
func (m *moments) spend(tenant string, d time.Duration, now time.Time) {
	r := m.used.of(tenant)
	if most := float64(m.used.burst) + r.TokensAt(now); most > 0 {
		r.ReserveN(now, min(int(d.Microseconds()), int(most)))
	}
}
