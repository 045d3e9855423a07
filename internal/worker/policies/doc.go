// Package policies maintains the config in force of a running worker: the worker's config with the policies that
// operators set for tenants. They are in a bucket that all workers follow.
//
//	p := policies.New(policies.Config{JS: js, Lay: lay, Apply: set.UseConfig, …}) // a partition.Set
//	err := p.Start(ctx) // before a partition is served
//	p.Run(ctx)
//	out, err := p.Set(ctx, &events.PolicyRequest{Tenant: "acme", Policy: "target: 0.5"})
//
// # Guarantees
//
//   - A policy is stored only if the worker that stores it can decide under it.
//   - A config is in OUTCOMES before an event is decided under it, and the markers hold the last event of each
//     config. So a replay decides each event under its own config, regardless of when a worker received the change. The ledgers
//     of package partition take the config in force with each event.
//   - After the start, and after an interruption of any length, the worker has all policies of the bucket.
//
// # Concurrency
//
// All methods are safe for concurrent use. Call Start before Run, and Run only once.
//
// # On failure
//
// A policy that is not valid with the worker's config, as after a start with other flags, is reported and ignored: its
// tenant has the worker's policy. While the server does not answer, the config stays and the worker retries.
package policies
