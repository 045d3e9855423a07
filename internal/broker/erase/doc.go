// Package erase removes a session from the streams: the request of a client, the pending erasures
// of a partition, and the overwriting of messages.
//
//	erased, err := erase.Request(ctx, js, address, id) // a client: publishes session.forget, waits
//	pending, err := erase.Pending(ctx, js, 3)          // a worker, after a take-over
//	outcomes, log, err := erase.Erase(ctx, js, e)
//
// # Lifecycle of an erasure
//
//	session.forget ──► session.forgotten (decided) ──► overwritten ──► session.erased (done)
//
// # Guarantees
//
//   - [Erase] overwrites the events before the session.forget, and the outcomes and jobs before its
//     session.forgotten. After an error call it again: it continues.
//   - [PublishUnlessErased] stores no event that quotes a session after its erasure: the server
//     compares sequences.
//
// # Concurrency
//
// The package is safe for concurrent use.
//
// # On failure
//
// [*RefusedError]: a worker refused the request. [*NotErasedError]: the request is stored, but the
// wait ended before the erasure was done. [ErrErased]: the session was erased, nothing was
// stored.
package erase
