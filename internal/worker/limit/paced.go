package limit

import (
	"context"
	"sync"

	"compactd/internal/summarize/model"
)

// Paced returns a context for work that often checks its context, such as redaction, and has no other place
// to yield: each call of Err yields to other operations. While a model answers, it holds no processor: see
// [model.WithIdle]. A nil limiter has no limits.
func (l *Limiter) Paced(ctx context.Context, of Account) (_ context.Context, end func()) {
	if l == nil {
		return ctx, func() {}
	}
	p := &paced{Context: ctx, op: l.Begin(of)}
	return model.WithIdle(p, p.idle), p.end
}

type paced struct {
	context.Context //nolint:containedctx // it is one

	mu    sync.Mutex // guards the fields below
	op    *Operation
	idles int // calls of idle
}

// Err waits for a turn, except during idle.
func (p *paced) Err() error {
	if err := p.Context.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idles > 0 {
		return nil
	}
	err := p.op.Yield(p.Context)
	if err == nil {
		err = p.op.Compute(p.Context)
	}
	if err != nil {
		return p.Context.Err() //nolint:wrapcheck // as of any context
	}
	return nil
}

// idle calls wait without a processor.
func (p *paced) idle(wait func()) {
	p.count(1)
	defer p.count(-1)
	wait()
}

func (p *paced) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.op.Rest()
	p.idles += n
}

func (p *paced) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.op.End()
}
