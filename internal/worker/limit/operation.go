package limit

import (
	"context"
	"time"
)

// Operation is one request, from its first byte until its answer was sent. A nil Operation has no
// limits; all methods accept it.
type Operation struct {
	limiter *Limiter
	of      Account
	memory  []lease
	// processor is held while the operation computes: a lease of Processor or of Quick.
	processor lease
	computes  bool
	class     Class
	slice     time.Time // begin of the slice: when processor was taken
}

// key finds the operation in a context.
type key struct{}

// With returns a context with the operation.
func (o *Operation) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, o)
}

// Of returns the operation of a context, or nil.
func Of(ctx context.Context) *Operation {
	o, _ := ctx.Value(key{}).(*Operation)
	return o
}

// Account returns the account of the operation.
func (o *Operation) Account() Account {
	if o == nil {
		return Account{}
	}
	return o.of
}

// For sets the account of the operation once it is known. Resources that it already holds stay with
// the account that they were taken for.
func (o *Operation) For(of Account) {
	if o != nil {
		o.of = of
	}
}

// End releases everything. It may be called again.
func (o *Operation) End() {
	if o == nil {
		return
	}
	o.Rest()
	o.Free()
}

// Free releases the memory before the operation ends.
func (o *Operation) Free() {
	if o == nil {
		return
	}
	for i := range o.memory {
		o.memory[i].release()
	}
	o.memory = nil
}

// Remember takes n bytes of memory until the end of the operation. It waits for its turn, without a processor, until
// ctx ends. An operation that holds much memory, or a slot of Reads, must not call it: two such operations
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

// Shrink frees all but n bytes of the last Remember, once the size of the answer is known.
func (o *Operation) Shrink(n int64) {
	if o != nil && len(o.memory) > 0 {
		o.memory[len(o.memory)-1].shrink(n)
	}
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

// Hold takes a slot of a class until release. It waits for its turn until ctx ends. Any goroutine may
// call it.
func (o *Operation) Hold(ctx context.Context, c Class) (release func(), err error) {
	if o == nil {
		return func() {}, nil
	}
	return o.limiter.Hold(ctx, c, o.of, 1)
}

// Borrow is Remember for memory that release frees before the operation ends.
func (o *Operation) Borrow(ctx context.Context, n int64) (release func(), err error) {
	if o == nil {
		return func() {}, nil
	}
	o.Rest()
	return o.limiter.Hold(ctx, Memory, o.of, n)
}

// slice is the time that an operation computes before it yields.
const slice = 5 * time.Millisecond

// Compute takes a processor until End or Rest. It waits for its turn until ctx ends.
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

// ComputeOver is Compute for work on a number of bytes. Work on at most [Large] bytes takes a slot of Quick, since
// few bytes may have thousands of messages. A tenant that used up its part of Quick waits for a processor instead.
func (o *Operation) ComputeOver(ctx context.Context, bytes int) error {
	if bytes <= Large {
		return o.compute(ctx, Quick)
	}
	return o.Compute(ctx)
}

// Rest releases the processor.
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

// Yield lets other operations compute after a slice of time. Between two calls a computing operation
// should do at most the work of a slice.
func (o *Operation) Yield(ctx context.Context) error {
	if o == nil || !o.computes || time.Since(o.slice) < slice {
		return ctx.Err()
	}
	o.Rest()
	return o.compute(ctx, o.class)
}

// Idle releases the processor during wait, and then takes it again.
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
