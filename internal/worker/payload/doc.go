// Package payload writes the payloads of outcomes: it reads the texts of turns from the log,
// by sequence, behind a cache of recent ones, and renders a view into messages.
//
//	r := payload.NewRenderer(nc, 64<<20)
//	data, omitted, err := r.Outcome(ctx, ahead, address, outcome, maxPayload)
//
// # Guarantees
//
// A text is rendered only for the session it belongs to. An outcome that does not fit, or
// whose texts are gone, is written without messages; the decision stays the same.
//
// # Concurrency
//
// A [Renderer] is shared by all partitions of a worker.
//
// # On failure
//
// An error beside a payload explains why the messages are missing; the payload is good.
package payload
