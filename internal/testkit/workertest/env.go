package workertest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/worker"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/policies"
)

// Env is a real server with the streams, in its own directory, and the settings of the next
// worker.
type Env struct {
	T       *testing.T
	Server  *embedded.Server
	Conn    *nats.Conn
	JS      jetstream.JetStream
	Streams *topology.Streams
	Config  *compaction.Config

	MaxAhead     int                  // of the next worker; 0 is the default
	DrainTimeout time.Duration        // of the next worker; 0 is the default
	Summarizer   summarize.Summarizer // of the next worker; nil makes none
	Limiter      *limit.Limiter       // of the next worker
	MarkerEvery  time.Duration        // the same; at least 50 ms

	Ledgers         string        // directory of the next worker's checkpoints; "" for none
	CheckpointEvery time.Duration // of the next worker; 0 is the default
	SnapshotEvery   time.Duration // the same; 0 is 5 min, negative is never

	CheckpointEvents int           // the same
	MaxLedgerBytes   int           // the same
	OutcomeBytes     int64         // the same
	MaxLedgers       int           // the same
	LeaseTTL         time.Duration // the same

	Policies policies.Lay               // the same
	Writers  func(*events.Job) []string // the same
}

// Start starts a worker. It stops with the test, which fails when a worker ends with an error that
// the test did not take.
func (env *Env) Start(owner string, l observe.Listener) *Running {
	env.T.Helper()
	wk, err := worker.New(worker.Config{
		Limiter: env.Limiter,
		Read:    env.Connect(), Commit: env.Connect(), Streams: env.Streams, Compaction: env.Config, Owner: owner, Listener: observe.Tee(l, env.validated()),
		MarkerEvery: max(env.MarkerEvery, 50*time.Millisecond), MaxAhead: env.MaxAhead,
		DrainTimeout: env.DrainTimeout, Summarizer: env.Summarizer, Dir: env.Ledgers, CheckpointEvery: env.CheckpointEvery, MaxLedgers: env.MaxLedgers,
		LeaseTTL: env.LeaseTTL, SnapshotEvery: cmp.Or(env.SnapshotEvery, 5*time.Minute), CheckpointEvents: env.CheckpointEvents,
		MaxLedgerBytes: env.MaxLedgerBytes, OutcomeBytes: env.OutcomeBytes, Policies: env.Policies, Writers: env.Writers,
	})
	if err != nil {
		env.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Running{Worker: wk, t: env.T, Cancel: cancel, Done: make(chan error, 1)}
	go func() { r.Done <- wk.Run(ctx); close(r.Done) }()
	env.T.Cleanup(r.Stop)
	return r
}

// validated fails the test when a history is not valid for its provider.
func (env *Env) validated() observe.Listener {
	return observe.Listener{Compacted: func(e observe.Compacted) {
		if e.Invalid != nil {
			env.T.Errorf("session %s, generation %d: %v", e.Address, e.Body.Generation, e.Invalid)
		}
	}}
}

// StartReady is Start, and waits until the worker is ready.
func (env *Env) StartReady(owner string, l observe.Listener) *Running {
	env.T.Helper()
	r := env.Start(owner, l)
	select {
	case <-r.Worker.Ready():
	case err := <-r.Done:
		env.T.Fatalf("run worker: %v", err)
	}
	return r
}

// Run is StartReady, and returns how to stop the worker before the test ends.
func (env *Env) Run(owner string, l observe.Listener) (stop func()) {
	env.T.Helper()
	return env.StartReady(owner, l).Stop
}

// Publish publishes an event of the tenant default, and returns its sequence.
func (env *Env) Publish(kind events.Kind, session string, data []byte) uint64 {
	env.T.Helper()
	return env.PublishFor("default", kind, session, data)
}

// PublishFor is Publish for a tenant.
func (env *Env) PublishFor(tenant string, kind events.Kind, session string, data []byte) uint64 {
	env.T.Helper()
	subject, err := events.Input(kind, events.Address{Tenant: tenant, Session: session})
	if err != nil {
		env.T.Fatal(err)
	}
	ack, err := env.JS.Publish(context.Background(), subject, data)
	if err != nil {
		env.T.Fatal(err)
	}
	return ack.Sequence
}

// AwaitDecided waits until the markers of all partitions are at the end of the log.
func (env *Env) AwaitDecided() {
	env.T.Helper()
	if err := env.UntilDecided(env.T.Context()); err != nil {
		env.T.Fatal(err)
	}
}

// UntilDecided is AwaitDecided, and returns an error.
func (env *Env) UntilDecided(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, WaitLimit)
	defer cancel()
	state, err := topology.State(ctx, env.JS, topology.LogStream)
	if err != nil {
		return err
	}
	return commit.AwaitCursor(ctx, env.JS, env.Streams.Partitions, state.Last)
}

// New starts a server with four partitions.
func New(t *testing.T, dir string) *Env {
	t.Helper()
	return Open(t, embedded.Config{Dir: dir}, topology.Config{Partitions: 4})
}

// Open starts a server, and makes the streams that it lacks. It stops with the test.
func Open(t *testing.T, c embedded.Config, top topology.Config) *Env {
	t.Helper()
	s, err := embedded.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	env := &Env{T: t, Server: s, Config: NewConfig(t, WithoutSummaries())}
	t.Cleanup(env.Stop)
	env.Conn = env.Connect()
	if env.JS, err = jetstream.New(env.Conn, jetstream.WithDefaultTimeout(WaitLimit)); err != nil {
		t.Fatal(err)
	}
	top.CreateBytes = 1 << 30
	if env.Streams, err = topology.Ensure(t.Context(), env.JS, top); err != nil {
		t.Fatal(err)
	}
	return env
}

// WithoutSummaries is the default policy for workers that make none.
func WithoutSummaries() policy.Policy {
	p := policy.Default()
	p.Summarize.Enabled = false
	return p
}

// NewConfig is a policy with the windows of known models.
func NewConfig(t *testing.T, p policy.Policy) *compaction.Config {
	t.Helper()
	c, err := compaction.NewConfig(p, measure.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Connect opens a connection that ends with the test.
func (env *Env) Connect() *nats.Conn {
	env.T.Helper()
	nc, err := connect.Open(context.Background(), connect.Options{InProcess: env.Server})
	if err != nil {
		env.T.Fatal(err)
	}
	env.T.Cleanup(nc.Close)
	return nc
}

// Stop stops the server, without the workers.
func (env *Env) Stop() {
	if env.Conn != nil {
		env.Conn.Close()
	}
	env.Server.Stop()
}

// Running is a worker that was started.
type Running struct {
	t *testing.T

	Worker *worker.Worker
	Cancel context.CancelFunc
	Done   chan error // gets what Run returned, and is closed
}

// Stop stops the worker gracefully. An error of it fails the test.
func (r *Running) Stop() {
	r.t.Helper()
	if err := r.End(); err != nil {
		r.t.Error(err)
	}
}

// End is Stop, and returns the error.
func (r *Running) End() error {
	r.Cancel()
	return <-r.Done
}
