package agents

import (
	"context"
	"testing"

	"compactd/internal/worker/limit"
)

// A tool ends with the request that it was called by, whatever context it is called with.
func TestToolEndsWithItsRequest(t *testing.T) {
	l := limit.New(limit.Config{})
	o := l.Begin(limit.Account{Tenant: "acme", Part: "token"})
	defer o.End()
	request, gone := context.WithCancel(o.With(t.Context()))
	ctx, end := (&Edge{limiter: l}).begin(request, t.Context())
	defer end()
	if of := limit.Of(ctx).Account(); of != o.Account() || ctx.Err() != nil {
		t.Errorf("it is of %v, %v", of, ctx.Err())
	}
	gone()
	<-ctx.Done()
}
