// Package tracing exports the spans of a process by OTLP over HTTP, and makes spans of the steps
// from an event to its outcomes.
//
//	t, err := tracing.Start(ctx, tracing.Config{URL: "http://127.0.0.1:4318", Version: version})
//	defer t.Stop()
//	worker.New(worker.Config{Tracer: t, …})
//
// Guarantees:
//
//   - No step waits for the receiver: spans that it does not take in time are dropped and reported.
//   - Spans have names, ids and counts, but no content of a message.
//   - An event with a traceparent keeps it. Any other event begins a new trace, which its outcomes have too.
package tracing
