package quota

import (
	"maps"
	"time"

	"golang.org/x/time/rate"
)

// A tenant's outcomes are rendered for timeBurst at once, and for one in timeParts of the time.
const (
	timeBurst = 500 * time.Millisecond
	timeParts = 4
)

// Times bounds how long the outcomes of each tenant are rendered in a partition that others use too. The zero
// value is ready. It is for one goroutine.
type Times struct{ byTenant map[string]*rate.Limiter }

// Left is how long outcomes of a tenant may be rendered now, 0 or less for not at all.
func (t *Times) Left(tenant string) time.Duration {
	l := t.byTenant[tenant]
	if l == nil {
		return timeBurst
	}
	return time.Duration(l.Tokens() * float64(time.Millisecond))
}

// Spend counts a time.
func (t *Times) Spend(tenant string, d time.Duration) {
	l := t.byTenant[tenant]
	if l == nil {
		maps.DeleteFunc(t.byTenant, func(_ string, l *rate.Limiter) bool { return l.Tokens() >= float64(timeBurst.Milliseconds()) })
		if t.byTenant == nil || len(t.byTenant) >= quotaTenants {
			t.byTenant = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Limit(time.Second.Milliseconds()/timeParts), int(timeBurst.Milliseconds()))
		t.byTenant[tenant] = l
	}
	for now := time.Now(); d > 0; d -= timeBurst {
		l.ReserveN(now, int(min(d, timeBurst).Milliseconds()))
	}
}
