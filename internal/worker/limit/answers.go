package limit

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates holds a rate limiter per tenant.
type rates struct {
	each  rate.Limit
	burst int

	mu       sync.Mutex // guards byTenant
	byTenant map[string]*rate.Limiter
}

func (a *rates) of(tenant string) *rate.Limiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.byTenant[tenant]
	if r != nil {
		return r
	}
	if a.byTenant == nil {
		a.byTenant = map[string]*rate.Limiter{}
	}
	if len(a.byTenant) >= mostIdle {
		maps.DeleteFunc(a.byTenant, func(_ string, x *rate.Limiter) bool { return x.Tokens() >= float64(a.burst) })
	}
	r = rate.NewLimiter(a.each, a.burst)
	a.byTenant[tenant] = r
	return r
}

// A tenant's rate of large answers to small requests: bytes at once, and bytes a second.
const (
	answerBurst = 32 << 20
	answerRate  = 8 << 20
)

// Pace waits until a tenant may get a large answer to a small request, or until ctx ends. It returns
// a func that counts the bytes of the answer.
func (l *Limiter) Pace(ctx context.Context, tenant string) (count func(bytes int), err error) {
	r := l.answers.of(tenant)
	if err := r.Wait(ctx); err != nil {
		return nil, err
	}
	return func(bytes int) {
		if bytes > Large {
			r.ReserveN(time.Now(), min(bytes, answerBurst))
		}
	}, nil
}
