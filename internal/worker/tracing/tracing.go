package tracing

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"compactd/internal/events"
	"compactd/internal/trace"
	"compactd/internal/worker/observe"
)

// Config configures an export.
type Config struct {
	// URL of the receiver, without /v1/traces.
	URL string
	// Headers of each request, in the form of OTEL_EXPORTER_OTLP_HEADERS: name=value, separated by
	// commas, with values escaped as in a URL.
	Headers string
	// Version of the program.
	Version string
	// OnError receives the errors of the export. It must not block. Default none.
	OnError func(error)
}

// Tracer is an [observe.Tracer]. Stop ends the export.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   oteltrace.Tracer
}

var _ observe.Tracer = (*Tracer)(nil)

// Start makes the provider of the process export its spans. An unreachable receiver is not an error.
func Start(ctx context.Context, c Config) (*Tracer, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no URL with http or https and a host", c.URL)
	}
	exporter, err := otlptrace.New(ctx, &receiver{u.JoinPath("v1/traces").String(), c.Headers})
	if err != nil {
		return nil, fmt.Errorf("export spans: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", trace.Scope), attribute.String("service.version", c.Version)),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("export spans: %w", err)
	}
	if c.OnError != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(c.OnError))
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	otel.SetTracerProvider(p)
	return &Tracer{p, p.Tracer(trace.Scope)}, nil
}

// stopTime limits the export of the last spans.
const stopTime = 2 * time.Second

// Stop exports the remaining spans.
func (t *Tracer) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}

// Received records the time of an event in the log.
func (t *Tracer) Received(s observe.Step) events.Trace {
	ctx := t.record(s)
	if s.Trace != "" {
		return s.Trace
	}
	return trace.Of(ctx)
}

// Did records a step.
func (t *Tracer) Did(s observe.Step) { t.record(s) }

func (t *Tracer) record(s observe.Step) context.Context {
	if s.Began.After(s.Ended) { // Began may be by the clock of the server
		s.Began = s.Ended
	}
	name, kind := s.Name, oteltrace.SpanKindInternal
	attributes := append(trace.Session(s.Address), attribute.Int64("compactd.seq", int64(s.Seq)), attribute.String("compactd.kind", string(s.Kind)))
	switch s.Name {
	case observe.StepQueue:
		kind = oteltrace.SpanKindConsumer
		attributes = append(attributes, attribute.String("messaging.system", "nats"))
	case observe.StepChat:
		provider, model, _ := strings.Cut(s.Model, "/")
		name, kind = s.Name+" "+model, oteltrace.SpanKindClient
		attributes = append(attributes, attribute.String("gen_ai.operation.name", "chat"),
			attribute.String("gen_ai.provider.name", provider), attribute.String("gen_ai.request.model", model),
			attribute.Int64("gen_ai.usage.input_tokens", s.Usage.Input), attribute.Int64("gen_ai.usage.output_tokens", s.Usage.Output))
	}
	if s.Job != "" {
		attributes = append(attributes, attribute.String("compactd.job", s.Job))
	}
	ctx, span := t.tracer.Start(trace.With(context.Background(), s.Trace), name,
		oteltrace.WithTimestamp(s.Began), oteltrace.WithSpanKind(kind), oteltrace.WithAttributes(attributes...))
	trace.Fail(span, s.Err)
	span.End(oteltrace.WithTimestamp(s.Ended))
	return ctx
}
