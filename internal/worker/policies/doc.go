// Package policies keeps the config in force of a worker that runs: its own, with the policies that operators set
// for tenants in a bucket, which all workers follow.
//
//	p := policies.New(policies.Config{JS: js, Lay: lay, Apply: parts.UseConfig, …})
//	err := p.Start(ctx) // before a partition is served
//	p.Run(ctx)
//	out, err := p.Set(ctx, &events.PolicyRequest{Tenant: "acme", Policy: "target: 0.5"})
//
// # Guarantees
//
//   - A policy is stored only if the worker that stores it can decide under it.
//   - A config is in OUTCOMES before an event is decided under it, and the markers say up to where the one before was in
//     force, so that a replay decides each event again under its own, whenever each worker saw the change.
//   - After the start, and after an interruption of any length, the worker follows all that is in the bucket.
//
// # Concurrency
//
// All of it is safe for concurrent use. Start comes before Run; Run is for one goroutine.
//
// # On failure
//
// A policy that does not fit the worker's own, as after a start with other flags, is reported and left out: its tenant
// has the worker's. A server that does not answer is waited out; the config stays as it is.
package policies
