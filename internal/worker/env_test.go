package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/stored"
	"compactd/internal/summarize"
	"compactd/internal/worker"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/policies"
)

// waitLimit is how long a test waits for what takes milliseconds on an idle machine.
const waitLimit = time.Minute

// testEnv is a real server with the streams, in its own directory, and the settings of the next
// worker.
type testEnv struct {
	t       *testing.T
	server  *embedded.Server
	conn    *nats.Conn
	js      jetstream.JetStream
	streams *topology.Streams
	config  *compaction.Config

	maxAhead     int                  // of the next worker; 0 is the default
	drainTimeout time.Duration        // of the next worker; 0 is the default
	summarizer   summarize.Summarizer // of the next worker; nil makes none
	limiter      *limit.Limiter       // of the next worker
	markerEvery  time.Duration        // the same; at least 50 ms

	ledgers         string        // directory of the next worker's checkpoints; "" for none
	checkpointEvery time.Duration // of the next worker; 0 is the default
	snapshotEvery   time.Duration // the same

	checkpointEvents int           // the same
	maxLedgerBytes   int           // the same
	outcomeBytes     int64         // the same
	maxLedgers       int           // the same
	leaseTTL         time.Duration // the same

	policies policies.Lay             // the same
	writer   func(*events.Job) string // the same
}

func newEnv(t *testing.T, dir string) *testEnv {
	t.Helper()
	return openEnv(t, embedded.Config{Dir: dir}, topology.Config{Partitions: 4})
}

func openEnv(t *testing.T, c embedded.Config, top topology.Config) *testEnv {
	t.Helper()
	s, err := embedded.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	env := &testEnv{t: t, server: s, config: newConfig(t, withoutSummaries())}
	t.Cleanup(env.stop)
	env.conn = env.connect()
	if env.js, err = jetstream.New(env.conn, jetstream.WithDefaultTimeout(waitLimit)); err != nil {
		t.Fatal(err)
	}
	top.CreateBytes = 1 << 30
	if env.streams, err = topology.Ensure(t.Context(), env.js, top); err != nil {
		t.Fatal(err)
	}
	return env
}

// withoutSummaries is the default policy for workers that make none.
func withoutSummaries() compaction.Policy {
	p := compaction.DefaultPolicy()
	p.Summarize.Enabled = false
	return p
}

func newConfig(t *testing.T, p compaction.Policy) *compaction.Config {
	t.Helper()
	c, err := compaction.NewConfig(p, compaction.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (env *testEnv) connect() *nats.Conn {
	env.t.Helper()
	nc, err := connect.Open(context.Background(), connect.Options{InProcess: env.server})
	if err != nil {
		env.t.Fatal(err)
	}
	env.t.Cleanup(nc.Close)
	return nc
}

func (env *testEnv) stop() {
	if env.conn != nil {
		env.conn.Close()
	}
	env.server.Stop()
}

// running is a worker that was started.
type running struct {
	worker *worker.Worker
	cancel context.CancelFunc
	done   chan error // gets what Run returned, and is closed
}

// start starts a worker.
func (env *testEnv) start(owner string, l observe.Listener) *running {
	env.t.Helper()
	wk, err := worker.New(worker.Config{
		Limiter: env.limiter,
		Read:    env.connect(), Commit: env.connect(), Streams: env.streams, Compaction: env.config, Owner: owner, Listener: observe.Tee(l, env.validated()),
		MarkerEvery: max(env.markerEvery, 50*time.Millisecond), MaxAhead: env.maxAhead,
		DrainTimeout: env.drainTimeout, Summarizer: env.summarizer, Dir: env.ledgers, CheckpointEvery: env.checkpointEvery, MaxLedgers: env.maxLedgers,
		LeaseTTL: env.leaseTTL, SnapshotEvery: env.snapshotEvery, CheckpointEvents: env.checkpointEvents,
		MaxLedgerBytes: env.maxLedgerBytes, OutcomeBytes: env.outcomeBytes, Policies: env.policies, Writer: env.writer,
	})
	if err != nil {
		env.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	env.t.Cleanup(cancel)
	r := &running{worker: wk, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- wk.Run(ctx); close(r.done) }()
	return r
}

// validated fails the test when a history is not valid for its provider.
func (env *testEnv) validated() observe.Listener {
	return observe.Listener{Compacted: func(e observe.Compacted) {
		if e.Invalid != nil {
			env.t.Errorf("session %s, generation %d: %v", e.Address, e.Body.Generation, e.Invalid)
		}
	}}
}

// stop stops the worker gracefully.
func (r *running) stop() error {
	r.cancel()
	return <-r.done
}

// run starts a worker, waits until it is ready, and returns how to stop it.
func (env *testEnv) run(owner string, l observe.Listener) (stop func() error) {
	env.t.Helper()
	r := env.start(owner, l)
	select {
	case <-r.worker.Ready():
	case err := <-r.done:
		env.t.Fatalf("run worker: %v", err)
	}
	return r.stop
}

// turn is a session.turn of one exchange, about 1,000 tokens.
func turn(n int) []byte {
	text := strings.Repeat(fmt.Sprintf("word %d ", n), 200)
	return fmt.Appendf(nil, `{"v":1,"id":"t%d","turn":%d,"model":{"provider":"openai","name":"gpt-4o","context_window":16000},"messages":[{"role":"user","content":%q},{"role":"assistant","content":%q}]}`, n, n, text, text)
}

func (env *testEnv) publish(kind events.Kind, session string, data []byte) uint64 {
	env.t.Helper()
	return env.publishFor("default", kind, session, data)
}

// publishFor is publish for a tenant.
func (env *testEnv) publishFor(tenant string, kind events.Kind, session string, data []byte) uint64 {
	env.t.Helper()
	subject, err := events.Input(kind, events.Address{Tenant: tenant, Session: session})
	if err != nil {
		env.t.Fatal(err)
	}
	ack, err := env.js.Publish(context.Background(), subject, data)
	if err != nil {
		env.t.Fatal(err)
	}
	return ack.Sequence
}

// awaitDecided waits until the markers of all partitions are at the end of the log.
func (env *testEnv) awaitDecided() {
	env.t.Helper()
	if err := env.untilDecided(env.t.Context()); err != nil {
		env.t.Fatal(err)
	}
}

func (env *testEnv) untilDecided(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	state, err := topology.State(ctx, env.js, topology.LogStream)
	if err != nil {
		return err
	}
	return commit.AwaitCursor(ctx, env.js, env.streams.Partitions.Count(), state.Last)
}

// stored reads all outcomes by subject.
func (env *testEnv) stored() map[string][]string { return bySubject(env.outcomesBySession()) }

func bySubject(sessions map[place][]outcome) map[string][]string {
	out := map[string][]string{}
	for _, all := range sessions {
		for _, o := range all {
			out[o.subject] = append(out[o.subject], o.data)
		}
	}
	return out
}

// wantRedecided compares the stored outcomes with those decided again from the log.
func (env *testEnv) wantRedecided() {
	env.t.Helper()
	if diff := cmp.Diff(bySession(env.redecided()), env.outcomesBySession(), cmp.AllowUnexported(outcome{}, place{})); diff != "" {
		env.t.Errorf("stored outcomes differ from those of the log (-log +stored):\n%s", diff)
	}
}

// onlyConfig reads the one config that is stored.
func (env *testEnv) onlyConfig() *compaction.Config {
	env.t.Helper()
	var found []*compaction.Config
	err := stream.ReadStream(env.t.Context(), env.js, topology.OutcomesStream, events.Config("*"), 1, 0, func(m jetstream.Msg, _ uint64) error {
		if string(m.Data()) == plantedText {
			return nil
		}
		c, err := stored.ReadConfig(m.Data())
		if err == nil && !slices.ContainsFunc(found, func(f *compaction.Config) bool { return f.Hash() == c.Hash() }) {
			found = append(found, c) // workers that start together may store it twice
		}
		return err
	})
	if err != nil {
		env.t.Fatal(err)
	}
	if len(found) != 1 {
		env.t.Fatalf("%d configs are stored", len(found))
	}
	return found[0]
}
