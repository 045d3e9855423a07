package tracing_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/request"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/trace"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/tracing"
)

const waitLimit = time.Minute

// collector takes spans by OTLP over HTTP.
type collector struct {
	mu       sync.Mutex // guards the fields below
	spans    []*otlp.Span
	received []byte
}

func (r *collector) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var in otlp.TracesData
	if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("X-Key") != "a b" || proto.Unmarshal(body, &in) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received = append(r.received, body...)
	for _, of := range in.GetResourceSpans() {
		for _, s := range of.GetScopeSpans() {
			r.spans = append(r.spans, s.GetSpans()...)
		}
	}
}

// of lists the names of the spans of a trace, sorted and each once.
func (r *collector) of(id string) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if hex.EncodeToString(s.GetTraceId()) == id {
			names = append(names, s.GetName())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// The trace of the client goes through the log to the outcome, by way of a summary: each step has a
// span, and no span has anything of a message. An event without a trace begins one.
func TestTraces(t *testing.T) {
	got := &collector{}
	srv := httptest.NewServer(got)
	defer srv.Close()
	tracer, err := tracing.Start(t.Context(), tracing.Config{URL: srv.URL, Headers: "X-Key=a%20b", Version: "test", OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	env := brokertest.New(t)
	models := summarizetest.Start(t, func(summarizetest.Prompt) string { return "<summary>The user tends a garden.</summary>" })
	m, err := provider.New(models.Config(summarizetest.Anthropic))
	if err != nil {
		t.Fatal(err)
	}
	stop := serve(t, env, llm.New(m), tracer)
	nc := env.Connect(connect.Options{})
	of := map[string]bool{} // traces of calls
	var compacted events.HistoryEntry
	var history []map[string]string
	for compacted.Trace == "" {
		text := strings.Repeat("secretgarden ", 200)
		history = append(history, map[string]string{"role": "user", "content": text}, map[string]string{"role": "assistant", "content": text})
		ctx, end := trace.Start(t.Context(), "call", events.Address{})
		var out events.SyncResponse
		err := request.Send(ctx, nc, events.OfTenant(events.SubjectSync, events.DefaultTenant), map[string]any{
			"tenant": events.DefaultTenant, "session": "garden", "messages": history,
			"model": events.Model{Provider: "anthropic", Name: "m", ContextWindow: 16_000},
		}, &out)
		end(err)
		if err != nil || len(history) > 400 {
			t.Fatal(len(history), err)
		}
		of[trace.Of(ctx).ID()] = true
		compacted = summarized(t, nc)
	}
	if !of[compacted.Trace] {
		t.Errorf("generation %d has the trace %s, of no call", compacted.Generation, compacted.Trace)
	}
	other := events.Address{Tenant: events.DefaultTenant, Session: "other"}
	subject, err := events.Input(events.KindTurn, other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.JS.Publish(t.Context(), subject, []byte("{")); err != nil { // it is refused
		t.Fatal(err)
	}
	own := rejected(t, nc, env.Streams.Partitions.Count(), other)
	stop()
	tracer.Stop()

	ofSummary := []string{"chat claude-test", "summarize"} // perhaps in the trace of an earlier call, which had it prepared
	ofCall := []string{"call", "commit", "decide", "publish turn", "queue", "render", "sync"}
	var all []string
	for id := range of {
		all = append(all, got.of(id)...)
	}
	if names := slices.Compact(slices.Sorted(slices.Values(all))); !slices.Equal(names, slices.Sorted(slices.Values(slices.Concat(ofCall, ofSummary)))) {
		t.Errorf("the calls have the spans %q", names)
	}
	names := slices.DeleteFunc(got.of(compacted.Trace), func(name string) bool { return slices.Contains(ofSummary, name) })
	if !slices.Equal(names, ofCall) {
		t.Errorf("a compaction has the spans %q, want %q", names, ofCall)
	}
	if names, want := got.of(own.ID()), []string{"commit", "decide", "queue", "render"}; !slices.Equal(names, want) {
		t.Errorf("an event without a trace has the spans %q, want %q", names, want)
	}
	if bytes.Contains(got.received, []byte("secretgarden")) || bytes.Contains(got.received, []byte("tends a garden")) {
		t.Error("spans have text of a message")
	}
}

func serve(t *testing.T, env *brokertest.Env, by *llm.Summarizer, tracer observe.Tracer) (stop func()) {
	config, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(worker.Config{
		Read: env.Connect(connect.Options{}), Commit: env.Connect(connect.Options{}), Streams: env.Streams, Compaction: config, Owner: "w",
		Summarizer: by, Tracer: tracer,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// summarized returns the first compaction with a summary of a model, the zero value for none.
func summarized(t *testing.T, nc *nats.Conn) (none events.HistoryEntry) {
	var out events.HistoryResponse
	in := map[string]string{"tenant": events.DefaultTenant, "session": "garden"}
	if err := request.Send(t.Context(), nc, events.OfTenant(events.SubjectHistory, events.DefaultTenant), in, &out); err != nil {
		t.Fatal(err)
	}
	for _, e := range out.Entries {
		if e.SummaryModel != "" {
			return e
		}
	}
	return none
}

// rejected returns the trace of the refusal of an event.
func rejected(t *testing.T, nc *nats.Conn, partitions int, a events.Address) (found events.Trace) {
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	filter := events.Outcome(events.PartitionOf(a, partitions), events.KindRejected, a)
	if err := retry.Every(10*time.Millisecond).Until(ctx, func() (bool, error) {
		m, err := stream.LastOf(ctx, nc, topology.OutcomesStream, filter)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		found = m.Trace
		return err == nil, err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}
