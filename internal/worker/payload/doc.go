// Package payload writes the payloads of outcomes: it reads the texts of turns from the log,
// by sequence, behind a cache of recent ones, and renders a view into messages.
//
//	r := payload.NewRenderer(nc, 64<<20)
//	data, omitted, err := r.Outcome(ctx, ahead, address, outcome, maxPayload)
//
// # Guarantees
//
// A text is rendered only for its own session. An outcome that is too large, or whose texts are
// gone, is written without messages; the decision stays the same.
//
// # Concurrency
//
// All partitions of a worker share a [Renderer].
//
// # On failure
//
// An error beside a payload is the reason why the messages are missing; the payload is valid.
package payload
