// Package query answers requests about sessions: context, stats, check, files, history,
// recall, sessions and health, over NATS, and for the HTTP API by [Service.Reply].
//
//	s := query.New(query.Config{…})
//	err := s.Run(ctx, until)
//
// One file each: the service and its endpoints (service.go), waiting for a turn (await.go),
// forwarding to the worker that serves a partition (relay.go), subjects of tenants
// (tenant.go), writing answers and refusals (answer.go), and one for each endpoint.
//
// # Guarantees
//
//   - Any worker takes a request; the one that serves the partition answers it.
//   - A view is shown only once the outcomes it rests on are committed.
//   - A request never makes the worker publish where only others may publish.
//
// # Concurrency
//
// The lock of a partition is held only to copy what the ledger contains; texts are read and
// rendered outside it, at most eight answers at a time.
//
// # On failure
//
// A refusal has a stable code and a hint. A panic fails one answer alone.
package query
