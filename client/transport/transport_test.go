package transport_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"compactd/client"
	"compactd/client/transport"
)

const waitLimit = time.Minute

const hi = `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`

// fakeWorker is a worker that is away or answers as configured.
type fakeWorker struct {
	away     atomic.Bool
	requests atomic.Int64
	sessions chan string
}

func (w *fakeWorker) Sync(_ context.Context, session string, in client.Sync) (*client.Synced, error) {
	w.requests.Add(1)
	w.sessions <- session
	if w.away.Load() {
		return nil, &client.Error{Code: client.CodeUnavailable}
	}
	return &client.Synced{Messages: in.Messages}, nil
}

func newFakeWorker() *fakeWorker { return &fakeWorker{sessions: make(chan string, 1000)} }

func newTransport(c client.FitterConfig) *transport.Transport {
	return &transport.Transport{Fitter: client.NewFitter(c), Session: "s"}
}

// post sends a request, and returns the status of its response.
func post(ctx context.Context, t *testing.T, to http.RoundTripper, url, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := to.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// newProvider answers every call with {}.
func newProvider(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	t.Cleanup(s.Close)
	return s.URL
}

// After three failures no worker is requested, until the time to try again has come: then one
// request finds out that it is back.
func TestCircuit(t *testing.T) {
	url, w := newProvider(t), newFakeWorker()
	w.away.Store(true)
	to := newTransport(client.FitterConfig{Worker: w, RetryAfter: waitLimit})
	for range 20 {
		post(t.Context(), t, to, url, hi)
	}
	if n := w.requests.Load(); n != 3 {
		t.Errorf("%d requests to a worker that is away", n)
	}

	w = newFakeWorker()
	w.away.Store(true)
	to = newTransport(client.FitterConfig{Worker: w, RetryAfter: time.Millisecond})
	for range 3 {
		post(t.Context(), t, to, url, hi)
	}
	w.away.Store(false)
	for until := time.Now().Add(waitLimit); w.requests.Load() < 5; {
		if post(t.Context(), t, to, url, hi); time.Now().After(until) {
			t.Fatal("the worker is not requested again")
		}
	}
}

// The context of a request names its session, before the settings do.
func TestWithSession(t *testing.T) {
	url, w := newProvider(t), newFakeWorker()
	to := newTransport(client.FitterConfig{Worker: w})
	post(t.Context(), t, to, url, hi)
	post(transport.WithSession(t.Context(), "other"), t, to, url, hi)
	if first, second := <-w.sessions, <-w.sessions; first != "s" || second != "other" {
		t.Errorf("the sessions are %s and %s", first, second)
	}
}

// Many sessions and sub-agents may use a transport at once.
func TestConcurrent(t *testing.T) {
	url, w := newProvider(t), newFakeWorker()
	to := newTransport(client.FitterConfig{Worker: w})
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 50 {
				post(t.Context(), t, to, url, hi)
			}
		}()
	}
	for range 8 {
		<-done
	}
	if n := w.requests.Load(); n != 400 {
		t.Errorf("%d requests", n)
	}
}

// A request without a session accepts the encodings of its caller, as its response is not read.
func TestEncodings(t *testing.T) {
	accepted := make(chan string, 2)
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { accepted <- r.Header.Get("Accept-Encoding") }))
	defer provider.Close()
	to := newTransport(client.FitterConfig{Worker: newFakeWorker()})
	for _, want := range []string{"gzip", "br, gzip"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, provider.URL+"/v1/chat/completions", strings.NewReader(hi))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "br, gzip")
		answer, err := to.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := <-accepted; got != want || r.Header.Get("Accept-Encoding") != "br, gzip" {
			t.Errorf("session %q: the provider may send %q, want %q", to.Session, got, want)
		}
		to.Session = ""
	}
}

// A refusal for length goes to the worker also under the status of a rate limit or a failure; another refusal
// with it costs no request.
func TestStatusesOfRefusals(t *testing.T) {
	for _, test := range []struct {
		status int
		body   string
		want   int64
	}{
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}`, 2},
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded your per-minute rate limit"}}`, 1},
		{500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size"}}`, 2},
		{500, `{"error":{"message":"Extra usage is required for long context requests."}}`, 1},
		{500, `{"error":{"message":"oops"}}`, 1},
		{503, `{"error":{"message":"the request exceeds the available context size"}}`, 1},
	} {
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.body)
		}))
		t.Cleanup(provider.Close)
		w := newFakeWorker()
		if got := post(t.Context(), t, newTransport(client.FitterConfig{Worker: w}), provider.URL, hi); got != test.status || w.requests.Load() != test.want {
			t.Errorf("%d %s: status %d after %d requests to the worker", test.status, test.body, got, w.requests.Load())
		}
	}
}
