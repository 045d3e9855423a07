package agents

import (
	"context"
	"testing"

	"compactd/internal/worker/limit"
)

// A tool ends with the request that it was called by, whatever context it is called with. Its memory counts until the
// answer to the request has left.
func TestToolEndsWithItsRequest(t *testing.T) {
	l := limit.New(limit.Config{})
	o := l.Begin(limit.Account{Tenant: "acme", Part: "token"})
	defer o.End()
	all := &calls{}
	request, gone := context.WithCancel(context.WithValue(o.With(t.Context()), callsKey{}, all))
	ctx, end := (&Edge{limiter: l}).begin(request, t.Context())
	if of := limit.Of(ctx).Account(); of != o.Account() || ctx.Err() != nil {
		t.Errorf("it is of %v, %v", of, ctx.Err())
	}
	if err := limit.Of(ctx).Remember(ctx, limit.Large); err != nil {
		t.Fatal(err)
	}
	gone()
	<-ctx.Done()
	if end(); l.Held(limit.Memory) != limit.Large {
		t.Error("an answer that has not left yet counts as no memory")
	}
	if all.end(); l.Held(limit.Memory) != 0 {
		t.Error("an answer that has left counts as memory")
	}
}
