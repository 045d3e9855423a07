package limit

import (
	"context"
	"time"
)

// Operation is one request, from its first byte until its answer has left. All methods may be
// called on nil, which has no limits.
type Operation struct {
	limiter *Limiter
	of      Account
	memory  []lease
	// processor is held while it computes: of Processor, or of Quick.
	processor lease
	computes  bool
	class     Class
	slice     time.Time // when the place was taken
}

// key finds the operation in a context.
type key struct{}

// With returns a context with the operation.
func (o *Operation) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, o)
}

// Of is the operation of a context, nil for none.
func Of(ctx context.Context) *Operation {
	o, _ := ctx.Value(key{}).(*Operation)
	return o
}

// Account is whose operation it is.
func (o *Operation) Account() Account {
	if o == nil {
		return Account{}
	}
	return o.of
}

// For names whose operation it is, once that is known. Memory and places that it holds
// stay with the account that they were taken for.
func (o *Operation) For(of Account) {
	if o != nil {
		o.of = of
	}
}

// End gives everything back. It may be called again.
func (o *Operation) End() {
	if o == nil {
		return
	}
	o.Rest()
	o.Free()
}

// Free gives back memory that is not needed any more, before the operation ends.
func (o *Operation) Free() {
	if o == nil {
		return
	}
	for i := range o.memory {
		o.memory[i].release()
	}
	o.memory = nil
}

// Remember takes n bytes of memory until the end of the operation, and waits in turn until ctx
// ends, without a processor. An operation that holds more than little, or a place of Reads, must not call it: two
// could wait for each other.
func (o *Operation) Remember(ctx context.Context, n int64) error {
	if o == nil || n <= 0 {
		return nil
	}
	o.Rest()
	got, err := o.limiter.pools[Memory].take(ctx, o.of, n)
	if err == nil {
		o.memory = append(o.memory, got)
	}
	return err
}

// TryRemember is Remember without waiting.
func (o *Operation) TryRemember(n int64) bool {
	if o == nil || n <= 0 {
		return true
	}
	p := o.limiter.pools[Memory]
	got, ok := p.try(o.of, n)
	if !ok {
		p.onRefuse()
		return false
	}
	o.memory = append(o.memory, got)
	return true
}

// Hold takes a place of a class until release, and waits in turn until ctx ends. Any goroutine may
// call it.
func (o *Operation) Hold(ctx context.Context, c Class) (release func(), err error) {
	if o == nil {
		return func() {}, nil
	}
	return o.limiter.Hold(ctx, c, o.of, 1)
}

// Borrow is Remember for memory that is given back before the operation ends, by release.
func (o *Operation) Borrow(ctx context.Context, n int64) (release func(), err error) {
	if o == nil {
		return func() {}, nil
	}
	o.Rest()
	return o.limiter.Hold(ctx, Memory, o.of, n)
}

// slice is how long an operation computes before others get their turn, where it can stop.
const slice = 5 * time.Millisecond

// Compute takes a processor until the end of the operation, or until Rest. It waits in turn until
// ctx ends.
func (o *Operation) Compute(ctx context.Context) error { return o.compute(ctx, Processor) }

func (o *Operation) compute(ctx context.Context, c Class) (err error) {
	if o == nil || o.computes && (o.class == Processor || c == Quick) {
		return nil
	}
	o.Rest()
	if c == Quick && o.limiter.moments.spent(o.of.Tenant, time.Now()) {
		c = Processor
	}
	if o.processor, err = o.limiter.pools[c].take(ctx, o.of, 1); err == nil {
		o.computes, o.class, o.slice = true, c, time.Now()
	}
	return err
}

// ComputeOver is Compute for work on some bytes. That on at most [Large] takes a place of Quick: few bytes may
// have thousands of messages. A tenant that computed for long in Quick waits its turn for a processor instead.
func (o *Operation) ComputeOver(ctx context.Context, bytes int) error {
	if bytes <= Large {
		return o.compute(ctx, Quick)
	}
	return o.Compute(ctx)
}

// Rest gives the processor back.
func (o *Operation) Rest() {
	if o == nil || !o.computes {
		return
	}
	o.computes = false
	o.processor.release()
	if now := time.Now(); o.class == Quick {
		o.limiter.moments.spend(o.of.Tenant, now.Sub(o.slice), now)
	}
}

// Yield lets others compute whose turn it is, after a slice of time. Between two calls an
// operation that computes should do no more work than fits a slice.
func (o *Operation) Yield(ctx context.Context) error {
	if o == nil || !o.computes || time.Since(o.slice) < slice {
		return ctx.Err()
	}
	o.Rest()
	return o.compute(ctx, o.class)
}

// Idle calls wait, for which it gives the processor back.
func (o *Operation) Idle(ctx context.Context, wait func() error) error {
	if o == nil || !o.computes {
		return wait()
	}
	o.Rest()
	if err := wait(); err != nil {
		return err
	}
	return o.compute(ctx, o.class)
}
