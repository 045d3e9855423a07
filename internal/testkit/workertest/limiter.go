package workertest

import (
	"testing"
	"time"

	"compactd/internal/broker/retry"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// Limiter is one whose changes a test awaits.
type Limiter struct {
	*limit.Limiter
	changed chan struct{} // there was one
}

// Await waits until what is held is as wanted.
func (l *Limiter) Await(t *testing.T, reached func() bool) {
	t.Helper()
	late := time.After(WaitLimit)
	for !reached() {
		select {
		case <-l.changed:
		case <-late:
			t.Fatal("the limiter holds something else")
		}
	}
}

// Limit gives the next worker a limiter.
func (env *Env) Limit(c limit.Config) *Limiter {
	changed := make(chan struct{}, 1)
	c.OnChange = func(limit.Class, int64) { retry.Wake(changed) }
	env.Limiter = limit.New(c)
	return &Limiter{env.Limiter, changed}
}

// RunLimitedEdge is RunEdge with a limiter that the worker and the listener share.
func (env *Env) RunLimitedEdge(memory int64) (*Edge, *Limiter) {
	env.T.Helper()
	l := env.Limit(limit.Config{Memory: memory})
	r := env.StartReady("a", observe.Listener{})
	e := env.StartEdge(r.Worker, func(c *agents.Config) { c.Limiter = l.Limiter })
	e.Running = r
	return e, l
}
