package worker_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
)

// A worker is healthy from its start, ready once it has caught up, and not ready any more once
// it is stopped.
func TestReadyz(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	if failed, _ := workertest.Readyz(t, m); !slices.Equal(failed, []string{"started"}) {
		t.Errorf("without a worker: %q", failed)
	}
	r := env.Monitor(m, "")
	workertest.AwaitReadyz(t, m)
	if _, got := workertest.Readyz(t, m); got.Served != 4 {
		t.Errorf("%d of 4 partitions served", got.Served)
	}
	if status, body := workertest.Get(t, m, "/healthz", "", ""); status != http.StatusOK {
		t.Errorf("healthz: %d %s", status, body)
	}
	r.Stop()
	workertest.AwaitReadyz(t, m, "started")
}

// A broker that is stopped is a problem, until it is started again.
func TestReadyzWithoutBroker(t *testing.T) {
	dir, listen := t.TempDir(), workertest.FreePort(t)
	c := embedded.Config{Dir: dir, Listen: listen}
	env := workertest.Open(t, c, topology.Config{Partitions: 4})
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	r := env.Monitor(m, "nats://"+listen)
	workertest.AwaitReadyz(t, m)
	env.Server.Stop()
	workertest.AwaitReadyz(t, m, "broker")
	var err error
	if env.Server, err = embedded.Start(c); err != nil {
		t.Fatal(err)
	}
	workertest.AwaitReadyz(t, m)
	r.Stop()
}

// A full stream is reported, with what to do.
func TestReadyzStreamFull(t *testing.T) {
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4, MaxBytesLog: 200 << 10})
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	env.Monitor(m, "")
	workertest.AwaitReadyz(t, m)
	at := events.Published(events.KindTurn, events.Address{Tenant: "default", Session: "s1"})
	for n := 1; ; n++ { // as many as it stores
		if _, err := env.JS.Publish(t.Context(), at, workertest.Turn(n)[:1000]); err != nil {
			break
		}
	}
	workertest.AwaitReadyz(t, m, "streams")
	if _, r := workertest.Readyz(t, m); !strings.HasPrefix(r.Problems[0].Message, "SESSIONS has too little room: it holds ") {
		t.Errorf("%+v", r)
	}
}

// A partition that is too many events behind, or whose oldest event is too old, is reported. So
// are a partition that ended with an error, and one that cannot write.
func TestReadyzPartitions(t *testing.T) {
	env := workertest.New(t, t.TempDir())
	watch := func(c worker.MonitorConfig) (*worker.Monitor, observe.Listener) {
		m := workertest.NewMonitor(t, c)
		r := env.Prepare("", observe.Listener{}) // and never run
		if err := m.Watch(r.Worker, nil); err != nil {
			t.Fatal(err)
		}
		return m, r.Worker.Board().Listener()
	}
	env.Publish(events.KindTurn, "s1", workertest.Turn(1))
	p := events.PartitionOf(events.Address{Tenant: "default", Session: "s1"}, 4)

	m, l := watch(worker.MonitorConfig{MaxLag: time.Nanosecond})
	l.PartitionAcquired(observe.PartitionAcquired{Partition: p})
	l.PartitionAcquired(observe.PartitionAcquired{Partition: (p + 1) % 4})
	failed, got := workertest.Readyz(t, m)
	if !slices.Equal(failed, []string{"started", "lag"}) || len(got.Problems) != 2 {
		t.Errorf("too old: %+v", got)
	}

	m, l = watch(worker.MonitorConfig{})
	l.PartitionAcquired(observe.PartitionAcquired{Partition: p})
	l.Applied(observe.Applied{Partition: p, Kind: events.KindTurn, Pending: 10_001})
	if failed, got = workertest.Readyz(t, m); !slices.Equal(failed, []string{"started", "lag"}) {
		t.Errorf("too many: %+v", got)
	}
	if _, body := workertest.Get(t, m, "/metrics", "", ""); !strings.Contains(body, fmt.Sprintf("compactd_lag_events{partition=\"%d\"} 10001\n", p)) {
		t.Errorf("the lag is not reported:\n%s", body)
	}

	m, l = watch(worker.MonitorConfig{})
	l.PartitionAcquired(observe.PartitionAcquired{Partition: p})
	l.PartitionFailed(observe.PartitionFailed{Partition: p, Err: errors.New("ledger of acme/s1: " + workertest.Canary)})
	l.PartitionReleased(observe.PartitionReleased{Partition: (p + 1) % 4, Err: fmt.Errorf("commit: %w", commit.ErrFenced)}) // another worker has it now
	full := &commit.StoreFullError{Code: 10077, Reason: "maximum bytes exceeded"}
	l.Retrying(observe.Retrying{Partition: (p + 2) % 4, Step: "commit", Err: full})
	l.Retrying(observe.Retrying{Partition: (p + 3) % 4, Step: "commit", Err: full})
	l.Committed(observe.Committed{Partition: (p + 3) % 4})
	_, got = workertest.Readyz(t, m)
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
	env := workertest.New(t, t.TempDir())
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	env.Monitor(m, "")
	workertest.AwaitReadyz(t, m)
	state := func() topology.StreamState {
		s, err := topology.State(t.Context(), env.JS, topology.CanaryStream)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before, began := state(), time.Now()
	var requests sync.WaitGroup
	for range 50 {
		requests.Go(func() { workertest.Readyz(t, m) })
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
	guarded, open := workertest.NewMonitor(t, worker.MonitorConfig{Token: token}), workertest.NewMonitor(t, worker.MonitorConfig{})
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
		if got, body := workertest.Get(t, c.m, c.path, c.token, c.host); got != c.want {
			t.Errorf("%s as %q with %q: %d, want %d: %.80s", c.path, c.host, c.token, got, c.want, body)
		}
	}
	browser := http.Header{"Accept": {"text/html"}, "Sec-Fetch-Site": {"cross-site"}}
	for _, m := range []*worker.Monitor{guarded, open} { // the page holds no data, and a runbook may link to it
		if got := statusOf(t, m, "GET", "/", browser); got != http.StatusOK {
			t.Errorf("the page: %d", got)
		}
	}
	if got, _ := workertest.Get(t, open, "/app.js", "", "rebound.example"); got != http.StatusForbidden {
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
	status, _ := workertest.Get(t, open, "/metrics", strings.Repeat("x", 64<<10), "")
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
