package limit

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

// Refusals bounds the rate of requests that are refused before they count for a tenant: without a token, or beyond
// its rate. Clients that send them in a row would take the processors of all tenants.
type Refusals struct{ rate *rate.Limiter }

const (
	refusalsPerSecond = 1000
	refusalWait       = 5 * time.Second
)

// NewRefusals is for the requests of one listener.
func NewRefusals() *Refusals {
	return &Refusals{rate.NewLimiter(refusalsPerSecond, refusalsPerSecond)}
}

// Await waits until one more may be refused, or until ctx ends. Where that takes too long the connection ends with
// the answer.
func (r *Refusals) Await(ctx context.Context, w http.ResponseWriter) {
	limited, cancel := context.WithTimeout(ctx, refusalWait)
	defer cancel()
	if r.rate.Wait(limited) != nil {
		w.Header().Set("Connection", "close")
	}
}
