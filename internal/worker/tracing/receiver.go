package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver sends spans by OTLP over HTTP. The client of OpenTelemetry would link gRPC.
type receiver struct{ url, headers string }

var _ otlptrace.Client = (*receiver)(nil)

// Start does nothing: an unreachable receiver is not an error.
func (*receiver) Start(context.Context) error { return nil }

// Stop does nothing.
func (*receiver) Stop(context.Context) error { return nil }

// UploadTraces sends spans once.
func (r *receiver) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans}) // encoded like an export request
	if err != nil {
		return fmt.Errorf("export %d resources: %w", len(spans), err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("export spans: %w", err)
	}
	for pair := range strings.SplitSeq(r.headers, ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			value, err = url.PathUnescape(strings.TrimSpace(value))
			if err != nil {
				return fmt.Errorf("export spans: header %s: %w", name, err)
			}
			req.Header.Set(strings.TrimSpace(name), value)
		}
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("export spans: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // lets the next request reuse the connection
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("export spans: %s answers %s", r.url, answer.Status)
	}
	return nil
}
