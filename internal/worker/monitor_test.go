package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize/llm"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
)

// newMonitor starts a monitor on a free port of loopback.
func newMonitor(t *testing.T, c worker.MonitorConfig) *worker.Monitor {
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

// get sends a GET to a monitor; token and host may be "".
func get(t *testing.T, m *worker.Monitor, path, token, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+m.Addr()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// readyz returns the checks that /readyz finds failed.
func readyz(t *testing.T, m *worker.Monitor) (failed []string, r worker.Readiness) {
	t.Helper()
	status, body := get(t, m, "/readyz", "", "")
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

// awaitReadyz waits until /readyz finds exactly these checks failed, and returns
// how long that took.
func awaitReadyz(t *testing.T, m *worker.Monitor, want ...string) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		failed, r := readyz(t, m)
		if slices.Equal(failed, want) {
			return time.Since(began)
		}
		if time.Since(began) > waitLimit {
			t.Fatalf("readyz reports %+v, want %q", r, want)
		}
		<-tick.C
	}
}

// awaitMetric waits until /metrics contains a text.
func awaitMetric(t *testing.T, m *worker.Monitor, want string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(waitLimit); ; <-tick.C {
		_, body := get(t, m, "/metrics", "", "")
		if strings.Contains(body, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s in\n%s", want, body)
		}
	}
}

// monitored is a worker that a monitor watches.
type monitored struct {
	worker *worker.Worker
	ctx    context.Context // ends with stop
	stop   func() error
	begin  func()
}

// prepare makes a worker on connections of its own, and does not run it.
func (env *testEnv) prepare(url string, l observe.Listener) *monitored {
	env.t.Helper()
	connect := env.connect
	if url != "" {
		connect = func() *nats.Conn { nc, _ := dial(env.t, url); return nc }
	}
	wk, err := worker.New(worker.Config{
		Read: connect(), Commit: connect(), Streams: env.streams, Compaction: env.config, Owner: "watched", Listener: l,
		Summarizer: env.summarizer, MarkerEvery: 50 * time.Millisecond,
	})
	if err != nil {
		env.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	env.t.Cleanup(cancel)
	done := make(chan error, 1)
	return &monitored{
		worker: wk, ctx: ctx,
		begin: func() { go func() { done <- wk.Run(ctx) }() },
		stop:  func() error { cancel(); return <-done },
	}
}

// monitored starts a worker that a monitor watches.
func (env *testEnv) monitored(m *worker.Monitor, url string) *monitored {
	env.t.Helper()
	r := env.prepare(url, m.Listener())
	if err := m.Watch(r.worker, r.ctx.Done()); err != nil {
		env.t.Fatal(err)
	}
	r.begin()
	return r
}

// A worker is healthy from its start, ready once it has caught up, and not ready any more once
// it is stopped.
func TestReadyz(t *testing.T) {
	env := newEnv(t, t.TempDir())
	m := newMonitor(t, worker.MonitorConfig{})
	if failed, _ := readyz(t, m); !slices.Equal(failed, []string{"started"}) {
		t.Errorf("without a worker: %q", failed)
	}
	r := env.monitored(m, "")
	awaitReadyz(t, m)
	if _, got := readyz(t, m); got.Served != 4 {
		t.Errorf("%d of 4 partitions served", got.Served)
	}
	if status, body := get(t, m, "/healthz", "", ""); status != http.StatusOK {
		t.Errorf("healthz: %d %s", status, body)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	awaitReadyz(t, m, "started")
}

// A broker that is stopped is a problem, until it is started again.
func TestReadyzWithoutBroker(t *testing.T) {
	dir, listen := t.TempDir(), freePort(t)
	c := embedded.Config{Dir: dir, Listen: listen}
	env := openEnv(t, c, topology.Config{Partitions: 4})
	m := newMonitor(t, worker.MonitorConfig{})
	r := env.monitored(m, "nats://"+listen)
	awaitReadyz(t, m)
	env.server.Stop()
	awaitReadyz(t, m, "broker")
	var err error
	if env.server, err = embedded.Start(c); err != nil {
		t.Fatal(err)
	}
	awaitReadyz(t, m)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}

// A full stream is reported, with what to do.
func TestReadyzStreamFull(t *testing.T) {
	env := openEnv(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4, MaxBytesLog: 200 << 10})
	m := newMonitor(t, worker.MonitorConfig{})
	env.monitored(m, "")
	awaitReadyz(t, m)
	at := events.Published(events.KindTurn, events.Address{Tenant: "default", Session: "s1"})
	for n := 1; ; n++ { // as many as it stores
		if _, err := env.js.Publish(t.Context(), at, turn(n)[:1000]); err != nil {
			break
		}
	}
	awaitReadyz(t, m, "streams")
	if _, r := readyz(t, m); !strings.HasPrefix(r.Problems[0].Message, "SESSIONS is full: it holds ") {
		t.Errorf("%+v", r)
	}
}

// A partition that is too many events behind, or whose oldest event is too old, is reported. So
// are a partition that ended with an error, and one that cannot write.
func TestReadyzPartitions(t *testing.T) {
	env := newEnv(t, t.TempDir())
	watch := func(c worker.MonitorConfig) (*worker.Monitor, observe.Listener) {
		m := newMonitor(t, c)
		r := env.prepare("", observe.Listener{}) // and never run
		if err := m.Watch(r.worker, nil); err != nil {
			t.Fatal(err)
		}
		return m, r.worker.Board().Listener()
	}
	env.publish(events.KindTurn, "s1", turn(1))
	p := events.PartitionOf(events.Address{Tenant: "default", Session: "s1"}, 4)

	m, l := watch(worker.MonitorConfig{MaxLag: time.Nanosecond})
	l.PartitionAcquired(observe.PartitionAcquired{Partition: p})
	l.PartitionAcquired(observe.PartitionAcquired{Partition: (p + 1) % 4})
	failed, got := readyz(t, m)
	if !slices.Equal(failed, []string{"started", "lag"}) || len(got.Problems) != 2 {
		t.Errorf("too old: %+v", got)
	}

	m, l = watch(worker.MonitorConfig{MaxLagEvents: 5})
	l.PartitionAcquired(observe.PartitionAcquired{Partition: p})
	l.Applied(observe.Applied{Partition: p, Kind: events.KindTurn, Pending: 6})
	if failed, got = readyz(t, m); !slices.Equal(failed, []string{"started", "lag"}) {
		t.Errorf("too many: %+v", got)
	}
	if _, body := get(t, m, "/metrics", "", ""); !strings.Contains(body, fmt.Sprintf("compactd_lag_events{partition=\"%d\"} 6\n", p)) {
		t.Errorf("the lag is not reported:\n%s", body)
	}

	m, l = watch(worker.MonitorConfig{})
	l.PartitionAcquired(observe.PartitionAcquired{Partition: p})
	l.PartitionFailed(observe.PartitionFailed{Partition: p, Err: errors.New("ledger of acme/s1: " + canary)})
	l.PartitionReleased(observe.PartitionReleased{Partition: (p + 1) % 4, Err: fmt.Errorf("commit: %w", commit.ErrFenced)}) // another worker has it now
	full := &commit.StoreFullError{Code: 10077, Reason: "maximum bytes exceeded"}
	l.Retrying(observe.Retrying{Partition: (p + 2) % 4, Step: "commit", Err: full})
	l.Retrying(observe.Retrying{Partition: (p + 3) % 4, Step: "commit", Err: full})
	l.Committed(observe.Committed{Partition: (p + 3) % 4})
	_, got = readyz(t, m)
	slices.SortFunc(got.Problems, func(a, b worker.Problem) int { return strings.Compare(a.Check, b.Check) })
	want := []worker.Problem{
		{Check: "disk", Message: fmt.Sprintf("partition %d cannot write: %v", (p+2)%4, full)},
		{Check: "partitions", Message: fmt.Sprintf("partition %d ended with an error and is opened again, see the log of the worker", p)},
		{Check: "started", Message: "0 partitions are caught up, not yet all"},
	}
	if diff := cmp.Diff(want, got.Problems); diff != "" {
		t.Error(diff)
	}
}

// However many requests arrive, the server is queried, and written to, once a second.
func TestReadyzIsBounded(t *testing.T) {
	env := newEnv(t, t.TempDir())
	m := newMonitor(t, worker.MonitorConfig{})
	env.monitored(m, "")
	awaitReadyz(t, m)
	state := func() topology.StreamState {
		s, err := topology.State(t.Context(), env.js, topology.CanaryStream)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before, began := state(), time.Now()
	var requests sync.WaitGroup
	for range 50 {
		requests.Go(func() { readyz(t, m) })
	}
	requests.Wait()
	after := state()
	if most := 1 + uint64(time.Since(began)/time.Second); after.Last-before.Last > most {
		t.Errorf("%d canaries written for 50 requests", after.Last-before.Last)
	}
	if after.Messages != 1 {
		t.Errorf("%d canaries are stored", after.Messages)
	}
}

// Hostile actors, open metrics: a request needs the token or, where there is none, a host name
// of this machine. There are no profiles.
func TestHTTPIsGuarded(t *testing.T) {
	const token = "0123456789abcdef"
	guarded, open := newMonitor(t, worker.MonitorConfig{Token: token}), newMonitor(t, worker.MonitorConfig{})
	for _, c := range []struct {
		m                 *worker.Monitor
		path, token, host string
		want              int
	}{
		{guarded, "/metrics", "", "", http.StatusUnauthorized},
		{guarded, "/healthz", "", "", http.StatusUnauthorized},
		{guarded, "/readyz", token + "x", "", http.StatusUnauthorized},
		{guarded, "/metrics", token, "", http.StatusOK},
		{guarded, "/metrics", token, "worker.example", http.StatusOK},
		{open, "/metrics", "", "", http.StatusOK},
		{open, "/metrics", "", "localhost:1", http.StatusOK},
		{open, "/metrics", "", "[::1]", http.StatusOK},
		{open, "/metrics", "", "rebound.example", http.StatusForbidden},
		{open, "/metrics", "", "127.0.0.1.rebound.example:8223", http.StatusForbidden},
		{open, "/debug/pprof/", "", "", http.StatusNotFound},
		{open, "/", "", "", http.StatusOK},
	} {
		if got, body := get(t, c.m, c.path, c.token, c.host); got != c.want {
			t.Errorf("%s as %q with %q: %d, want %d: %.80s", c.path, c.host, c.token, got, c.want, body)
		}
	}
	browser := http.Header{"Accept": {"text/html"}, "Sec-Fetch-Site": {"cross-site"}}
	for _, m := range []*worker.Monitor{guarded, open} { // the page holds no data, and a runbook may link to it
		if got := statusOf(t, m, "GET", "/", browser); got != http.StatusOK {
			t.Errorf("the page: %d", got)
		}
	}
	if got, _ := get(t, open, "/app.js", "", "rebound.example"); got != http.StatusForbidden {
		t.Errorf("the page under another name: %d", got)
	}
	resp, err := http.Post("http://"+open.Addr()+"/readyz", "text/plain", strings.NewReader("x")) //nolint:noctx // a test of one answer
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", resp.StatusCode)
	}
	status, _ := get(t, open, "/metrics", strings.Repeat("x", 64<<10), "")
	if status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("64 KiB of headers: %d", status)
	}
}

// A monitor does not listen for other machines without a token.
func TestMonitorRefuses(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0:0":     "others can reach it: set a token",
		"[::]:0":        "others can reach it",
		"10.1.2.3:80":   "others can reach it",
		"worker:80":     "others can reach it",
		"nowhere":       "want host:port",
		"127.0.0.1:1e9": "port is not -1 to 65535",
	} {
		if _, err := worker.NewMonitor(worker.MonitorConfig{Listen: listen, Data: "d"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", listen, err, want)
		}
	}
	if _, err := worker.NewMonitor(worker.MonitorConfig{Listen: ":0", Token: "short", Data: "d"}); err == nil || !strings.Contains(err.Error(), "shorter than 16") {
		t.Errorf("a short token: %v", err)
	}
	m, err := worker.NewMonitor(worker.MonitorConfig{Listen: ":0", Data: "d"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(m.Addr(), "127.0.0.1:") {
		t.Errorf("a missing host is %s", m.Addr())
	}
}

// Hostile actors, secrets in metrics: after good, hostile and compacted sessions no endpoint
// returns a word, a tenant or a session of them.
func TestMetricsNameNoSession(t *testing.T) {
	env := newEnv(t, t.TempDir())
	env.summarizer = llm.New(nil, nil)
	env.config = newConfig(t, compaction.DefaultPolicy())
	m := newMonitor(t, worker.MonitorConfig{})
	r := env.monitored(m, "")
	publish := func(kind events.Kind, data string) {
		at := events.Published(kind, events.Address{Tenant: "t-" + canary, Session: "s-" + canary})
		if _, err := env.js.Publish(t.Context(), at, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= 20; n++ {
		publish(events.KindTurn, strings.ReplaceAll(string(turn(n)), "word", canary))
	}
	publish(events.KindTurn, `{"`+canary+`"`)
	publish(events.KindCompact, `{"v":1,"id":"`+canary+`","focus":"`+canary+`"}`)
	env.awaitDecided()
	awaitReadyz(t, m)
	awaitMetric(t, m, `summaries_total{by="embedded",`)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		_, body := get(t, m, path, "", "")
		all.WriteString(body)
	}
	if strings.Contains(all.String(), canary) {
		t.Errorf("an endpoint returns the canary:\n%s", all.String())
	}
	for _, want := range []string{`rejected_total{code="bad_json"} 1`, `result="compacted"`, `saved_tokens_total{reason=`} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %s: the test shows nothing\n%s", want, all.String())
		}
	}
}
