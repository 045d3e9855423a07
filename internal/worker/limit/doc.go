// Package limit shares the memory, the slots and the processors of a worker among tenants, from
// the first byte of an operation until its answer was sent.
//
//	l := limit.New(limit.Config{Memory: 128 << 20})
//	o := l.Begin(limit.Account{Tenant: "acme", Part: token})
//	defer o.End()
//	body, err := o.ReadBody(ctx, w, r, limit.Body{Most: 4 << 20})
//	if len(body) > limit.Large {
//		err = o.Compute(ctx) // takes one of few processors for long work
//	}
//	err = o.Idle(ctx, func() error { … }) // waits without a processor
//
// # Guarantees
//
// A tenant takes at most as much of a class as it leaves free: a single tenant half, two tenants a third each.
// A tenant that holds nothing is admitted while anything is free. Within a tenant one part, a
// token or a session, leaves a quarter of the share to the other parts. An operation waits for its turn until
// its context ends. TryHold and TryRemember do not wait. A wait fails at once if 8,192 operations wait, or if
// those of its tenant reach the number of free waits. The next turn goes to the tenant, and within it to the
// part, with the least recent use, in the unit of the class: bytes of memory, or time of a processor or a
// slot. The cost of a turn grows with the logarithm of the waiting shares.
//
// Long work takes at most all processors but one. Small operations do not wait for it: they have twice as many
// slots as there are processors. A tenant whose small operations use more than a sixteenth of the time of all
// processors, while other tenants compute, waits for its turn as with large ones. An operation waits for memory
// before it has a slot of reads, and for either without a processor, so that no two operations wait for each
// other.
//
// docs/adr/0052 has the reasons.
//
// # Concurrency
//
// A [Limiter] is safe for use by any goroutine; an [Operation] belongs to one at a time, except
// [Operation.Hold].
//
// # On failure
//
// A wait that ends with its context returns the cause of the context.
package limit
