// Package trace carries the trace of a request from its caller into the log, by the API of
// OpenTelemetry.
//
//	ctx = trace.With(ctx, events.ReadTrace(r.Header["Traceparent"]))
//	ctx, end := trace.Start(ctx, "sync", address)
//	defer func() { end(err) }()
//	header[events.HeaderTrace] = trace.Of(ctx)
//
// Guarantees:
//
//   - Spans go to the provider of the process, [otel.GetTracerProvider]. Where there is none they cost
//     a few nanoseconds, and the trace of the caller is passed on as it came.
//   - A span has names, ids and counts, and nothing of a message.
package trace
