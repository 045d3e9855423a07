package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/erase"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/inspect"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
)

// waitLimit bounds every wait for an answer.
const waitLimit = time.Minute

// An agent of a tenant does all that agents do, a worker all that workers do, with the
// permissions of the example: nothing that they need is refused.
func TestLoop(t *testing.T) {
	f := newDirectory(t)
	url := f.single()
	w := startWorker(t, url, 1)
	a := newAgent(t, url, "acme")

	erased := a.subscribe(events.KindForgotten, "s1")
	a.converse("s1")
	var stats events.StatsResponse
	if code := a.ask(events.OfTenant(events.SubjectStats, "acme"), `{"tenant":"acme","session":"s1"}`, &stats); code != "" || !stats.Known {
		t.Errorf("stats: %q, %+v", code, stats)
	}
	var history events.ContextResponse
	if code := a.ask(events.OfTenant(events.SubjectContext, "acme"), `{"tenant":"acme","session":"s1"}`, &history); code != "" || history.Generation == 0 {
		t.Errorf("context: %q, generation %d", code, history.Generation)
	}
	var original events.RecallResponse
	if code := a.ask(events.OfTenant(events.SubjectRecall, "acme"), `{"tenant":"acme","session":"s1","turn":1}`, &original); code != "" || len(original.Messages) != 2 {
		t.Errorf("recall: %q, %d messages", code, len(original.Messages))
	}
	if code := a.ask(events.OfTenant(events.SubjectContext, "acme"), `{"tenant":"globex","session":"s1"}`, &history); code != events.CodeForbidden {
		t.Errorf("the context of another tenant: %q", code)
	}

	select {
	case d := <-w.written:
		if d.Failure != "" {
			t.Errorf("a summary failed: %s", d.Failure)
		}
	case <-time.After(waitLimit):
		t.Error("no summary was written")
	}

	a.publish(events.KindOverflow, "s1", `{"v":1,"id":"o1","error":"prompt is too long: 219898 tokens > 16000 maximum","status":400}`)
	a.publish(events.KindCompact, "s1", `{"v":1,"id":"c1","focus":"words"}`)
	a.publish(events.KindRewind, "s1", `{"v":1,"id":"r1","generation":0}`)
	a.publish(events.KindEnd, "s1", `{"v":1,"id":"e1"}`)
	w.awaitPublished()

	checkOperator(t, url)
	if _, err := erased.NextMsg(waitLimit); err != nil {
		t.Errorf("session.forgotten: %v", err)
	}
	checkMonitor(t, url)
	w.stop()
	w.wantNoRefusal()
	a.wantNoRefusal()

	next := startWorker(t, url, 1) // on an empty directory: it reads the snapshots
	next.awaitPublished()
	next.stop()
	next.wantNoRefusal()
}

// checkOperator has the operator look, and erase.
func checkOperator(t *testing.T, url string) {
	t.Helper()
	nc := connectAs(t, url, "operator")
	if _, err := inspect.Describe(t.Context(), newJS(t, nc), t.TempDir()); err != nil {
		t.Errorf("inspect: %v", err)
	}
	for _, finding := range inspect.Diagnose(t.Context(), inspect.Target{Conn: nc, Data: t.TempDir()}).Findings {
		if strings.Contains(strings.ToLower(finding.Message), "permission") {
			t.Errorf("doctor: %s", finding.Message)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	if done, err := erase.Request(ctx, newJS(t, nc), events.Address{Tenant: "acme", Session: "s1"}, "f1"); err != nil || done.Events == 0 {
		t.Errorf("erase: %v, %+v", err, done)
	}
	var stats events.StatsResponse
	m, err := nc.Request(events.SubjectStats, []byte(`{"tenant":"acme","session":"s2"}`), waitLimit)
	if err != nil || codec.Unmarshal(m.Data, &stats) != nil || stats.V != events.Version {
		t.Errorf("stats: %v, %+v", err, stats)
	}
	if err := nc.LastError(); err != nil && !strings.Contains(err.Error(), `"$KV.LEASES.doctor"`) { // what doctor tries: no worker's user
		t.Errorf("the operator was refused: %v", err)
	}
}

// checkMonitor has the monitor read figures, from an account of its own.
func checkMonitor(t *testing.T, url string) {
	t.Helper()
	nc := connectAs(t, url, "monitor")
	if s, err := newJS(t, nc).Stream(t.Context(), topology.LogStream); err != nil || s.CachedInfo().State.Msgs == 0 {
		t.Errorf("stream info: %v", err)
	}
	var health events.HealthResponse
	m, err := nc.Request(events.SubjectHealth, nil, waitLimit)
	if err != nil || codec.Unmarshal(m.Data, &health) != nil || health.Status != events.HealthOK {
		t.Errorf("health: %v, %+v", err, health)
	}
	if m, err := nc.Request("$SRV.STATS.compactd", nil, waitLimit); err != nil || !strings.Contains(string(m.Data), events.SubjectContext) {
		t.Errorf("stats of the service: %v", err)
	}
	if err := nc.LastError(); err != nil {
		t.Errorf("the monitor was refused: %v", err)
	}
}

// refusals are what the server refused to one user, and whatever else went wrong.
type refusals struct {
	t   testing.TB
	mu  sync.Mutex // guards all
	all []error
}

// add takes an error unless the server was only slow, or had another write of the same subject in
// process: what it refuses is also reported to the connection, as a violation of a permission.
func (r *refusals) add(err error) {
	if errors.Is(err, nats.ErrNoResponders) { // a cluster that elects a leader; the worker tries again
		return
	}
	if errors.Is(err, context.DeadlineExceeded) || jsapi.HasCode(err, jsapi.CodeWrongLastConstant) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, err)
}

func (r *refusals) wantNoRefusal() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.all {
		r.t.Error(err)
	}
}

func (r *refusals) connect(url, user string) *nats.Conn {
	r.t.Helper()
	nc, err := connect.Open(context.Background(), connect.Options{
		URL: url, User: user, Password: password(user), CA: "certs/ca.pem",
		OnError: func(err error) { r.add(fmt.Errorf("%s: %w", user, err)) },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(nc.Close)
	return nc
}

// aWorker is one that runs, as the user worker.
type aWorker struct {
	refusals
	js      jetstream.JetStream
	streams *topology.Streams
	stop    func()
	written chan observe.SummaryDone // the first one
}

func startWorker(t testing.TB, url string, replicas int) *aWorker {
	t.Helper()
	return startOwner(t, url, "w", topology.Config{Partitions: 2, Replicas: replicas, CreateBytes: 1 << 30})
}

func startOwner(t testing.TB, url, owner string, top topology.Config) *aWorker {
	t.Helper()
	w := &aWorker{refusals: refusals{t: t}, written: make(chan observe.SummaryDone, 1)}
	read := w.connect(url, "worker")
	w.js = newJS(t, read)
	var err error
	if w.streams, err = topology.Ensure(t.Context(), w.js, top); err != nil {
		t.Fatal(err)
	}
	if err := topology.Canary(t.Context(), w.js); err != nil {
		t.Fatal(err)
	}
	config, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	wk, err := worker.New(worker.Config{
		Read: read, Commit: w.connect(url, "worker"), Streams: w.streams, Compaction: config, Owner: owner, Dir: t.TempDir(),
		MarkerEvery: 50 * time.Millisecond, LeaseTTL: 2 * time.Second, SnapshotEvery: time.Second, Summarizer: extract.New(),
		Listener: observe.Listener{
			Retrying: func(i observe.Retrying) { w.add(fmt.Errorf("%s: %w", i.Step, i.Err)) },
			SummaryDone: func(d observe.SummaryDone) {
				select {
				case w.written <- d:
				default:
				}
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- wk.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the worker ended: %v", err)
		}
	})
	t.Cleanup(w.stop)
	select {
	case <-wk.Ready():
	case err := <-done:
		t.Fatalf("the worker ended: %v", err)
	}
	return w
}

// awaitPublished waits until all that is in the log is decided and published.
func (w *aWorker) awaitPublished() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	state, err := topology.State(ctx, w.js, topology.LogStream)
	if err == nil {
		err = commit.AwaitCursor(ctx, w.js, w.streams.Partitions, state.Last)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// stored is the subject of a session's turns in the log.
func (w *aWorker) stored(tenant, session string) string {
	a := events.Address{Tenant: tenant, Session: session}
	return fmt.Sprintf("log.%d.turn.%s", w.streams.Partitions.Of(a), a)
}

// agent is one of a tenant.
type agent struct {
	refusals
	tenant string
	conn   *nats.Conn
	js     jetstream.JetStream
}

func newAgent(t testing.TB, url, tenant string) *agent {
	t.Helper()
	a := &agent{refusals: refusals{t: t}, tenant: tenant}
	a.conn = a.connect(url, tenant)
	a.js = newJS(t, a.conn)
	return a
}

func (a *agent) publish(kind events.Kind, session, payload string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if _, err := a.js.Publish(ctx, fmt.Sprintf("session.%s.%s.%s", kind, a.tenant, session), []byte(payload)); err != nil {
		a.t.Fatalf("publish %s: %v", kind, err)
	}
}

// turn is one exchange of about 1,000 tokens, in a window of 16,000.
func turn(n int) string {
	text := strings.Repeat(fmt.Sprintf("word %d ", n), 200)
	return fmt.Sprintf(`{"v":1,"turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":16000},"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]}`, n, text, text)
}

func (a *agent) subscribe(kind events.Kind, session string) *nats.Subscription {
	a.t.Helper()
	sub, err := a.conn.SubscribeSync(events.Published(kind, events.Address{Tenant: a.tenant, Session: session}))
	if err != nil {
		a.t.Fatal(err)
	}
	return sub
}

// converse publishes turns until the agent receives a compaction, without a consumer.
func (a *agent) converse(session string) events.Compacted {
	a.t.Helper()
	sub := a.subscribe(events.KindCompacted, session)
	defer sub.Unsubscribe()
	for n := range 22 {
		a.publish(events.KindTurn, session, turn(n+1))
	}
	m, err := sub.NextMsg(waitLimit)
	if err != nil {
		a.t.Fatalf("no compaction of 22 turns: %v", err)
	}
	var out events.Compacted
	if err := codec.Unmarshal(m.Data, &out); err != nil {
		a.t.Fatal(err)
	}
	return out
}

// ask returns the code of a refusal, "" for an answer.
func (a *agent) ask(subject, payload string, out any) events.Code {
	a.t.Helper()
	m, err := a.conn.Request(subject, []byte(payload), waitLimit)
	if err != nil {
		a.t.Fatalf("%s: %v", subject, err)
	}
	if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
		return events.Code(code)
	}
	if err := codec.Unmarshal(m.Data, out); err != nil {
		a.t.Fatal(err)
	}
	return ""
}
