// Package tracing exports the spans of a process by OTLP over HTTP, and makes spans of the steps
// from an event to its outcomes.
//
//	t, err := tracing.Start(ctx, tracing.Config{URL: "http://127.0.0.1:4318", Version: version})
//	defer t.Stop()
//	worker.New(worker.Config{Tracer: t, …})
//
// Guarantees:
//
//   - No step waits for the receiver: what it does not take in time is dropped and reported.
//   - Spans have names, ids and counts, and nothing of a message.
//   - An event with a traceparent keeps it. For any other a new trace begins, and its outcomes have that one.
package tracing
