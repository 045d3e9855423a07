// Package coord coordinates a fleet of workers through buckets: the leases, one for each
// partition that a worker holds; the members, one for each running worker; the shares, the use of
// models by each tenant; the policies of tenants; and the prefixes, which find unnamed sessions.
//
//	lease, err := leases.Acquire(ctx, 3, coord.Holder{Member: "a", Owner: process})
//	err = leases.Renew(ctx, lease)
//	err = members.Heartbeat(ctx, coord.Member{Name: "a", Owner: process})
//	stop, err := members.Watch(ctx, func(m coord.Member, running bool) { … }, onError)
//
// # Guarantees
//
//   - A lease has one holder at a time by the clock of the server. It permits a take-over of a
//     partition but is not a fence: a holder may notice late that its lease ended. The fence of
//     package commit makes such a holder harmless.
//   - A key expires its TTL after its last write, even if the server or the worker restarts.
//
// # Concurrency
//
// All types are safe for concurrent use. Callbacks of one watch run one at a time.
//
// # On failure
//
// [ErrHeld]: another worker holds the lease. [ErrLeaseLost]: another process has taken the lease; one that
// ended and that no worker took is renewed. After an error of a watch, changes may be missing: watch again.
package coord
