// Package coord coordinates a fleet of workers through three buckets: the leases, one for each
// partition that a worker holds, the members, one for each running worker, and the shares, what
// each tenant has used of models.
//
//	lease, err := leases.Acquire(ctx, 3, coord.Holder{Member: "a", Owner: process})
//	err = leases.Renew(ctx, lease)
//	err = members.Heartbeat(ctx, coord.Member{Name: "a", Owner: process})
//	stop, err := members.Watch(ctx, func(m coord.Member, running bool) { … }, onError)
//
// # Guarantees
//
//   - A lease has one holder at a time by the clock of the server. It is a reason to take a
//     partition over, and no fence: a holder may notice late that its lease ended. The fence of
//     package commit keeps such a holder harmless.
//   - A key ends its TTL after its last write, whether the server or the worker restarts meanwhile.
//
// # Concurrency
//
// All of it is safe for concurrent use. Callbacks of one watch run one at a time.
//
// # On failure
//
// [ErrHeld]: another worker holds the lease. [ErrLeaseLost]: the lease ended, or another worker
// has it. After an error of a watch, changes may be missed: watch again.
package coord
