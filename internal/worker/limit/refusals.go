package limit

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

// Refusals limits the rate of requests that are refused before they count for a tenant: those without a token, or
// beyond its rate. Clients that send many of them would take the processors of all tenants.
type Refusals struct{ rate *rate.Limiter }

const (
	refusalsPerSecond = 1000
	refusalWait       = 5 * time.Second
)

// NewRefusals returns the limit for the requests of one listener.
func NewRefusals() *Refusals {
	return &Refusals{rate.NewLimiter(refusalsPerSecond, refusalsPerSecond)}
}

// Await waits until one more request may be refused, or until ctx ends. If that takes too long, the connection is
// closed after the answer.
func (r *Refusals) Await(ctx context.Context, w http.ResponseWriter) {
	limited, cancel := context.WithTimeout(ctx, refusalWait)
	defer cancel()
	if r.rate.Wait(limited) != nil {
		w.Header().Set("Connection", "close")
	}
}
