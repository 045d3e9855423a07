package limit

import (
	"context"
	"sync"
	"time"
)

// Paced returns a context for work that checks often whether it ended, as redaction does, and has
// no other place to stop: each Err of it lets others compute first whose turn it is. The processor
// is given back when Err was not called for a slice, as while a model answers, and at end. A nil
// limiter has no limits.
func (l *Limiter) Paced(ctx context.Context, of Account) (_ context.Context, end func()) {
	if l == nil {
		return ctx, func() {}
	}
	p := &paced{Context: ctx, op: l.Begin(of)}
	return p, p.end
}

type paced struct {
	context.Context //nolint:containedctx // it is one

	mu    sync.Mutex // guards the fields below
	op    *Operation
	timer *time.Timer // gives the processor back
}

// Err waits for a turn.
func (p *paced) Err() error {
	if err := p.Context.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	err := p.op.Yield(p.Context)
	if err == nil {
		err = p.op.Compute(p.Context)
	}
	if err != nil {
		return p.Context.Err() //nolint:wrapcheck // as of any context
	}
	p.timer = time.AfterFunc(slice, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.op.Rest()
	})
	return nil
}

func (p *paced) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.op.End()
}
