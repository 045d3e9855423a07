// Package limit shares the memory, the places and the processors of a worker among tenants, from
// the first byte of an operation until its answer has left.
//
//	l := limit.New(limit.Config{Memory: 128 << 20})
//	o := l.Begin(limit.Account{Tenant: "acme", Part: token})
//	defer o.End()
//	body, err := o.ReadBody(ctx, w, r, limit.Body{Most: 4 << 20})
//	if len(body) > limit.Large {
//		err = o.Compute(ctx) // one of few goroutines that compute for long
//	}
//	err = o.Idle(ctx, func() error { … }) // a wait holds no processor
//
// # Guarantees
//
// A tenant takes at most as much of a class as it leaves free: one alone half, two a third each.
// A tenant that holds nothing is always let in while anything is free. Within a tenant one part, a
// token or a session, leaves a quarter of the share to the others. An operation waits in turn until
// its context ends, except with TryHold and TryRemember, and where 8,192 wait or its tenant has half
// of the waits that are left. The turn is that of the tenant, and within it of the part, that used the
// least lately, counted in the units of the class: bytes of memory, the time of a processor or a
// place. A turn costs the logarithm of those that wait.
//
// At most all processors but one compute for long. Small operations do not wait for those that do: twice as many
// places as there are processors are theirs. A tenant that computes more than a sixteenth of the time of all
// processors in them, while others compute, waits its turn as with large ones. An operation waits for memory before it has a place of reads, and for
// either without a processor, so that none waits for another that waits for it.
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
// An operation whose context ends while it waits gets the cause of the context.
package limit
