package trace

import (
	"context"
	"encoding/hex"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"compactd/internal/events"
)

// Scope names the instrumentation of all spans.
const Scope = "compactd"

// With returns a context whose spans are below the one that t names; ctx where t is "".
func With(ctx context.Context, t events.Trace) context.Context {
	if t == "" {
		return ctx
	}
	var c trace.SpanContextConfig
	var flags [1]byte
	_, _ = hex.Decode(c.TraceID[:], []byte(t[3:35])) // hex digits, by its form
	_, _ = hex.Decode(c.SpanID[:], []byte(t[36:52]))
	_, _ = hex.Decode(flags[:], []byte(t[53:55]))
	c.TraceFlags, c.Remote = trace.TraceFlags(flags[0]), true
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(c))
}

// Of returns the trace of the span of a context, "" where it has none.
func Of(ctx context.Context) events.Trace {
	c := trace.SpanContextFromContext(ctx)
	if !c.IsValid() {
		return ""
	}
	return events.Trace(fmt.Sprintf("00-%s-%s-%s", c.TraceID(), c.SpanID(), c.TraceFlags()))
}

// Set puts the trace of a context into the headers of a message.
func Set(ctx context.Context, headers map[string][]string) {
	if t := Of(ctx); t != "" {
		headers[events.HeaderTrace] = []string{string(t)}
	}
}

// Start begins a span about a session, the zero address for none. end ends it, with the error that the step had.
func Start(ctx context.Context, name string, a events.Address) (_ context.Context, end func(error)) {
	ctx, span := otel.Tracer(Scope).Start(ctx, name)
	if !span.IsRecording() {
		return ctx, func(error) {}
	}
	if a.Session != "" {
		span.SetAttributes(Session(a)...)
	}
	return ctx, func(err error) {
		Fail(span, err)
		span.End()
	}
}

// Session returns the attributes of a session.
func Session(a events.Address) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("compactd.tenant", a.Tenant), attribute.String("gen_ai.conversation.id", a.Session)}
}

// Fail marks a span with the code of an error; nil marks nothing. The text of an error may have
// content, so it is left out.
func Fail(span trace.Span, err error) {
	if err == nil {
		return
	}
	code := events.CodeOf(err)
	span.SetAttributes(attribute.String("error.type", string(code)))
	span.SetStatus(codes.Error, string(code))
}
