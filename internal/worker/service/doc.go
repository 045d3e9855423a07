// Package service answers requests about sessions, over NATS and over HTTP; [Operations] lists them. A sync
// publishes the new messages of a history, and answers with the history to send (package syncs). Code of this process calls
// the typed functions: Sync, Context, Recall and others (requests.go), and Publish (publish.go).
//
//	s := service.New(service.Config{…})
//	err := s.Run(ctx, until)                                                  // over NATS
//	service.ServeHTTP(mux, func() (*service.Service, error) { return s, nil }, nil)  // over HTTP
//
// An [Operation] is one function from a request to an answer. To add one, write it in a file of
// its own, with a decoder in package events, and add it to [Operations]: it is then answered
// over both, described by discovery and in the OpenAPI document.
//
//	NATS, owner (nats.go) ──► decode ──┐              ┌─ here, at once or in a place
//	HTTP        (http.go) ──► decode ──┼─► serve ─────┼─ here, when a turn is decided (await.go)
//	process (requests.go) ─────────────┘              └─ by the worker that serves the partition (relay.go)
//
// [Refusal] turns any error into the one that the caller receives: its code is a header over NATS,
// and a status over HTTP.
//
// # Guarantees
//
//   - Any worker takes a request; the one that serves the partition answers it.
//   - A view is shown only once the outcomes it rests on are committed.
//   - A request never makes the worker publish where only others may publish.
//   - An operator's read of content is in the audit log before it is answered, and not answered if
//     that is impossible: see audit.go.
//
// # Concurrency
//
// The lock of a partition is held only to copy from the ledger; texts are read and rendered outside
// it, at most eight answers at a time.
//
// # On failure
//
// A refusal has a stable code and a hint. A panic fails one answer alone.
package service
