package limit

import (
	"maps"
	"math"
	"runtime"
	"sync"
	"time"
)

// moments measures the time that tenants compute in [Quick]: a small request may cost as much as a large one.
// While other tenants compute too, a tenant that used its part of the processors, and about as much as the
// first of all tenants, computes in [Processor] instead.
type moments struct {
	processors float64

	mu      sync.Mutex // guards the fields below
	uses    map[string]use
	last    string    // the tenant that computed last
	at      time.Time // time of that
	changed time.Time // last time that another tenant computed within [together]
}

// use is the recent use of a tenant in seconds. It decays exponentially with age.
type use struct {
	seconds float64
	at      time.Time
}

func (u use) now(now time.Time) float64 { return u.seconds * math.Exp(-now.Sub(u.at).Seconds()) }

// A tenant's part for small requests is one momentsPart-th of all processors.
const momentsPart = 16

// together is the time within which two tenants count as computing at once.
const together = time.Second

func newMoments() moments {
	return moments{processors: float64(runtime.GOMAXPROCS(0)), uses: map[string]use{}}
}

// Spent reports whether the operation's tenant has used its part of [Quick] while other tenants compute.
func (o *Operation) Spent() bool {
	return o != nil && o.limiter.moments.spent(o.of.Tenant, time.Now())
}

// Spend counts computing time for a tenant outside of its operations, such as a decision.
// A nil limiter has no limits.
func (l *Limiter) Spend(tenant string, d time.Duration) {
	if l != nil {
		l.moments.spend(tenant, d, time.Now())
	}
}

// spent reports whether a tenant that wants to compute now has to wait for its turn. On a machine short of
// processors all tenants take longer; so a tenant that uses clearly less than the first one does not wait.
func (m *moments) spent(tenant string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != tenant && now.Sub(m.at) <= together {
		m.changed = now
	}
	m.last, m.at = tenant, now
	own := m.uses[tenant].now(now)
	if now.Sub(m.changed) > together || own*momentsPart <= m.processors {
		return false
	}
	for _, u := range m.uses {
		if own < u.now(now)*3/4 {
			return false
		}
	}
	return true
}

// spend adds computing time of a tenant.
func (m *moments) spend(tenant string, d time.Duration, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.uses) >= mostIdle {
		maps.DeleteFunc(m.uses, func(_ string, u use) bool { return u.now(now) < 0.001 })
	}
	m.uses[tenant] = use{min(m.uses[tenant].now(now)+d.Seconds(), m.processors), now} // the cap lets a long computation decay
}
