package workertest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/worker"
	"compactd/internal/worker/observe"
)

// NewMonitor starts a monitor on a free port of loopback.
func NewMonitor(t *testing.T, c worker.MonitorConfig) *worker.Monitor {
	t.Helper()
	c.Listen, c.Data = "127.0.0.1:-1", t.TempDir()
	m, err := worker.NewMonitor(c)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := m.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(running.Wait)
	return m
}

// Answer is what a monitor answers over HTTP.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Send sends a request to a monitor, with headers, Host among them.
func Send(t *testing.T, m *worker.Monitor, method, path, body string, h http.Header) Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+m.Addr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if h != nil {
		r.Header, r.Host = h, h.Get("Host")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{resp.StatusCode, resp.Header, string(data)}
}

// Get sends a GET to a monitor; token and host may be "".
func Get(t *testing.T, m *worker.Monitor, path, token, host string) (int, string) {
	t.Helper()
	h := http.Header{"Host": {host}}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	a := Send(t, m, http.MethodGet, path, "", h)
	return a.Status, a.Body
}

// Post sends a POST with JSON to a monitor.
func Post(t *testing.T, m *worker.Monitor, path, body string) (status int, answer string) {
	t.Helper()
	a := Send(t, m, http.MethodPost, path, body, http.Header{"Content-Type": {"application/json"}})
	return a.Status, a.Body
}

// Readyz returns the checks that /readyz finds failed.
func Readyz(t *testing.T, m *worker.Monitor) (failed []string, r worker.Readiness) {
	t.Helper()
	status, body := Get(t, m, "/readyz", "", "")
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, p := range r.Problems {
		failed = append(failed, p.Check)
	}
	if r.Ready != (status == http.StatusOK) || r.Ready != (len(failed) == 0) {
		t.Errorf("status %d with %s", status, body)
	}
	return slices.Compact(failed), r
}

// AwaitReadyz waits until /readyz finds exactly these checks failed, and returns
// how long that took.
func AwaitReadyz(t *testing.T, m *worker.Monitor, want ...string) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		failed, r := Readyz(t, m)
		if slices.Equal(failed, want) {
			return time.Since(began)
		}
		if time.Since(began) > WaitLimit {
			t.Fatalf("readyz reports %+v, want %q", r, want)
		}
		<-tick.C
	}
}

// Monitored is a worker that a monitor watches.
type Monitored struct {
	Worker *worker.Worker
	ctx    context.Context // ends with stop
	Stop   func()          // an error fails the test
	Begin  func()
}

// Monitor starts a worker that a monitor watches, and waits until it is ready. It stops with the test.
func (env *Env) Monitor(m *worker.Monitor, url string) *Monitored {
	env.T.Helper()
	r := env.Prepare(url, m.Listener())
	if err := m.Watch(r.Worker, r.ctx.Done()); err != nil {
		env.T.Fatal(err)
	}
	r.Begin()
	env.T.Cleanup(r.Stop)
	<-r.Worker.Ready()
	return r
}

// Prepare makes a worker on connections of its own, and does not run it.
func (env *Env) Prepare(url string, l observe.Listener) *Monitored {
	env.T.Helper()
	connect := env.Connect
	if url != "" {
		connect = func() *nats.Conn { nc, _ := Dial(env.T, url); return nc }
	}
	wk, err := worker.New(worker.Config{
		Read: connect(), Commit: connect(), Streams: env.Streams, Compaction: env.Config, Owner: "watched", Listener: l,
		Summarizer: env.Summarizer, MarkerEvery: 50 * time.Millisecond,
	})
	if err != nil {
		env.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	env.T.Cleanup(cancel)
	done := make(chan error, 1)
	return &Monitored{
		Worker: wk, ctx: ctx,
		Begin: func() { go func() { done <- wk.Run(ctx); close(done) }() },
		Stop: func() {
			cancel()
			if err := <-done; err != nil {
				env.T.Error(err)
			}
		},
	}
}
