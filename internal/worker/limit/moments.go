package limit

import (
	"maps"
	"math"
	"runtime"
	"sync"
	"time"
)

// moments is how long tenants compute in [Quick]: a small request may cost as much as a large one. A tenant
// that used its part of the processors, and about as much as any other, computes in [Processor] instead,
// while other tenants compute too.
type moments struct {
	processors float64

	mu      sync.Mutex // guards the fields below
	uses    map[string]use
	last    string    // the tenant that computed last
	at      time.Time // when it did
	changed time.Time // when another one did within [together] of that, last
}

// use is what a tenant used lately, in seconds: each counts for less as it gets older.
type use struct {
	seconds float64
	at      time.Time
}

func (u use) now(now time.Time) float64 { return u.seconds * math.Exp(-now.Sub(u.at).Seconds()) }

// momentsPart is the part of all processors, one of so many, that a tenant has for small requests.
const momentsPart = 16

// together is how long two tenants count as computing at once.
const together = time.Second

func newMoments() moments {
	return moments{processors: float64(runtime.GOMAXPROCS(0)), uses: map[string]use{}}
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

// spent reports whether a tenant, which computes now, has to wait its turn. Where the machine is short of
// processors all tenants take longer, and those that use less than the first of them do not wait.
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

// spend counts a time of a tenant.
func (m *moments) spend(tenant string, d time.Duration, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.uses) >= mostIdle {
		maps.DeleteFunc(m.uses, func(_ string, u use) bool { return u.now(now) < 0.001 })
	}
	m.uses[tenant] = use{min(m.uses[tenant].now(now)+d.Seconds(), m.processors), now} // what took long is over after as long
}
