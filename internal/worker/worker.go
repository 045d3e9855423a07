package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"compactd/internal/broker/audit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/worker/agents"
	"compactd/internal/worker/fleet"
	"compactd/internal/worker/jobs"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/partition"
	"compactd/internal/worker/policies"
	"compactd/internal/worker/service"
	"compactd/internal/worker/spending"
)

// Defaults of a [Config] that flags have too.
const (
	DefaultLeaseTTL     = 10 * time.Second
	DefaultDrainTimeout = 10 * time.Second
	DefaultMaxLedgers   = 100_000
)

// Config configures a worker. Fields without a default are required.
type Config struct {
	// Read is the connection for incoming turns, Commit the one for outcomes. They should
	// differ: a commit must not wait behind a backlog of turns.
	Read, Commit *nats.Conn
	// Texts is the connection that reads texts of histories and summaries, Answers the one
	// that reads data for answers to requests. Each should be separate: a server handles the
	// requests of a connection in order, and reads a block of 8 MiB for each text. Default Read.
	Texts, Answers *nats.Conn
	// Limiter limits all requests, including those of the listener for agents. Default: a limiter
	// with half of Memory.
	Limiter *limit.Limiter
	// Publish is the connection for the turns of syncs. Its user may publish the events of
	// agents. Default Read.
	Publish *nats.Conn
	// Streams is the result of topology.Ensure.
	Streams *topology.Streams
	// Compaction is the config of decisions. New adds the maximum age of the log to it.
	Compaction *compaction.Config
	// Policies lays the policies that operators set for tenants over Compaction. Without it none can be set.
	Policies policies.Lay
	// Owner identifies this process. No other one, past or present, may have the same.
	Owner string
	// LeaseTTL is the time that the partitions of a crashed worker stay without an owner, and the
	// time that a worker may be unreachable. In whole seconds; a restart on the same Dir need
	// not wait. Default [DefaultLeaseTTL], at least 1 s.
	LeaseTTL time.Duration
	// Summarizer works on the jobs of all partitions and, if it is a
	// [summarize.FileSummarizer], on attached files. Nil leaves jobs to other
	// workers, and files to the embedded summarizer.
	Summarizer summarize.Summarizer
	// Writers returns the models that may be called for a job, or nil if the embedded summarizer writes. Without
	// Writers the budgets of tenants limit nothing.
	Writers func(*events.Job) []string
	// Listener receives the events of the worker. Default none.
	Listener observe.Listener
	// Tracer records the steps of events. Default none.
	Tracer observe.Tracer
	// Version of the program. Default "dev".
	Version string
	// WhatIf compares policies on a session. Default none.
	WhatIf service.WhatIf
	// HTTP is the address of the [Monitor], which has this worker's console. Default none.
	HTTP string

	// Dir holds the checkpoints of ledgers, a file for each partition. Without it every start
	// rebuilds the ledgers from the log.
	Dir string
	// Sync forces every checkpoint to disk. Without it a file that was open at a power loss is
	// rebuilt.
	Sync bool
	// A checkpoint is due after CheckpointEvery, or after CheckpointEvents events of a
	// partition. Default 1 s and 10,000; only tests set them.
	CheckpointEvery  time.Duration
	CheckpointEvents int
	// SnapshotEvery is the interval at which copies of the files go into the object store. A
	// worker without files continues from them. Default 0: no snapshots, not even at a stop.
	SnapshotEvery time.Duration
	// MaxLedgers limits the ledgers in memory, of all partitions together, if there is a
	// Dir: the least recently used ones are read again when needed. Default 100,000.
	MaxLedgers int
	// Memory limits the bytes of data that grows with the work: ledgers, and the queues of
	// each step. Default 512 MiB.
	Memory int64
	// MaxLedgerBytes limits the memory of ledgers. Default an eighth of Memory; only tests
	// set it.
	MaxLedgerBytes int

	// OutcomeBytes limits the bytes of session.compacted that all workers together store for a
	// tenant per hour; further ones are published without messages. Default a 64th of the
	// bound of OUTCOMES, at least 256 MiB; negative means no limit.
	OutcomeBytes int64

	// MarkerEvery limits the time until a marker is stored for a cursor that moved without
	// outcomes. Default 1 s; only tests set it.
	MarkerEvery time.Duration
	// DrainTimeout limits a stop: the last commits, checkpoints and snapshots, and the
	// release of the leases. Default [DefaultDrainTimeout].
	DrainTimeout time.Duration
	// MaxAhead limits the decided, uncommitted events with outcomes of a partition. Default
	// 4,096; only tests set it.
	MaxAhead int
}

func (c *Config) validate() error {
	var errs []error
	if c.Read == nil || c.Commit == nil {
		errs = append(errs, errors.New("connections Read and Commit are required"))
	}
	if c.Streams == nil {
		errs = append(errs, errors.New("field Streams is required"))
	}
	if c.Compaction == nil {
		errs = append(errs, errors.New("field Compaction is required"))
	}
	if c.Owner == "" {
		errs = append(errs, errors.New("field Owner is required"))
	}
	if c.LeaseTTL != 0 && (c.LeaseTTL < time.Second || c.LeaseTTL%time.Second != 0) {
		errs = append(errs, fmt.Errorf("lease TTL %s is not 1 s or more, in whole seconds", c.LeaseTTL))
	}
	return errors.Join(errs...)
}

// Worker serves its share of the partitions of one log. A single worker serves all of them.
type Worker struct {
	config   Config
	js       jetstream.JetStream
	parts    *partition.Set
	service  *service.Service
	board    *observe.Board
	hub      *agents.Hub
	policies *policies.Policies
	spending *spending.Spending
	ready    sync.WaitGroup // done by the fleet when its share is caught up, and by the service
	caughtUp chan struct{}  // closed when ready is done
}

// New returns a worker. It starts with Run.
func New(c Config) (*Worker, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("new worker: %w", err)
	}
	c.Version = cmp.Or(c.Version, "dev")
	board := observe.NewBoard()
	c.Listener = observe.Tee(c.Listener, board.Listener())
	c.Memory = cmp.Or(c.Memory, 512<<20)
	c.Texts, c.Answers = cmp.Or(c.Texts, c.Read), cmp.Or(c.Answers, c.Read)
	if c.Limiter == nil {
		c.Limiter = limit.New(limit.Config{Memory: c.Memory / 2})
	}
	c.LeaseTTL = cmp.Or(c.LeaseTTL, DefaultLeaseTTL)
	c.MarkerEvery = cmp.Or(c.MarkerEvery, time.Second)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, DefaultDrainTimeout)
	c.CheckpointEvery = cmp.Or(c.CheckpointEvery, time.Second)
	c.CheckpointEvents = cmp.Or(c.CheckpointEvents, 10_000)
	c.MaxLedgers = cmp.Or(c.MaxLedgers, DefaultMaxLedgers)
	c.MaxAhead = cmp.Or(c.MaxAhead, 4096)
	js, err := jetstream.New(c.Read)
	var publish jetstream.JetStream
	if err == nil {
		publish, err = jetstream.New(cmp.Or(c.Publish, c.Read))
	}
	if err == nil {
		c.Compaction, err = c.Compaction.WithRetention(int64(c.Streams.MaxAge / time.Second))
	}
	var answers jetstream.JetStream
	if err == nil {
		answers, err = jetstream.New(c.Answers)
	}
	if err != nil {
		return nil, fmt.Errorf("new worker: %w", err)
	}
	log := audit.New(answers)
	w := &Worker{config: c, js: js, board: board, hub: agents.NewHub(answers, c.Limiter), caughtUp: make(chan struct{}), parts: partition.NewSet(js, partition.Config{
		Read: c.Read, Commit: c.Commit, Texts: c.Texts, Streams: c.Streams, Compaction: c.Compaction, Owner: c.Owner, Listener: c.Listener, Tracer: c.Tracer, Limiter: c.Limiter, Audit: log,
		Dir: c.Dir, Sync: c.Sync, CheckpointEvery: c.CheckpointEvery, CheckpointEvents: c.CheckpointEvents, SnapshotEvery: c.SnapshotEvery,
		MaxLedgers: c.MaxLedgers, MaxLedgerBytes: c.MaxLedgerBytes, Memory: c.Memory, OutcomeBytes: c.OutcomeBytes,
		MaxAhead: c.MaxAhead, MarkerEvery: c.MarkerEvery, DrainTimeout: c.DrainTimeout,
	})}
	w.ready.Add(2)
	go func() { w.ready.Wait(); close(w.caughtUp) }()
	if c.Policies != nil {
		w.policies = policies.New(policies.Config{
			JS: js, Lay: c.Policies, Present: w.parts.Compaction, Apply: w.parts.UseConfig,
			MaxBytes: func() int { return connect.MaxPayload(c.Commit) },
			Report:   func(err error) { c.Listener.Retry(-1, "follow policies", err) },
		})
	}
	w.spending = spending.New(spending.Config{
		JS: answers, Config: w.parts.Compaction, Report: func(err error) { c.Listener.Retry(-1, "add up spending", err) },
	})
	w.service = service.New(service.Config{
		Read: c.Read, Commit: c.Commit, Answers: c.Answers, Publish: publish, JS: js, Partitions: w.parts,
		Limiter: c.Limiter, Summarizer: c.Summarizer, Listener: c.Listener, Owner: c.Owner, HTTP: c.HTTP, Board: board, Policies: w.policies, Spending: w.spending, Audit: log, WhatIf: c.WhatIf, Version: c.Version,
		Ready: w.Ready(), Subscribed: w.ready.Done,
	})
	return w, nil
}

// Service returns the service, for requests of this process.
func (w *Worker) Service() *service.Service { return w.service }

// Events returns the hub that reads outcomes for followers. Run runs it.
func (w *Worker) Events() *agents.Hub { return w.hub }

// Compaction returns the config in force.
func (w *Worker) Compaction() *compaction.Config { return w.parts.Compaction() }

// Ready is closed when every partition of this worker's share is caught up and requests are
// answered. It stays open if Run ends before that.
func (w *Worker) Ready() <-chan struct{} { return w.caughtUp }

// Run serves until ctx ends. Then it stops reading, commits decided events, hands its partitions
// over, and returns nil, all within DrainTimeout; [partition.ErrDrain] means that the time was too
// short to commit everything. Any other end is an error. A take-over of a partition by another
// worker does not end Run.
func (w *Worker) Run(ctx context.Context) error {
	unsubscribe := func() {}
	defer func() { unsubscribe() }()
	var f *fleet.Fleet
	err := jsapi.AwaitServer(ctx, func(err error) { w.config.Listener.Retry(-1, "join", err) }, func() error {
		unsubscribe() // ends the previous attempt
		if w.policies != nil {
			if err := w.policies.Start(ctx); err != nil {
				unsubscribe = func() {}
				return err
			}
		}
		stop, err := w.parts.Join(ctx)
		if err != nil {
			unsubscribe = func() {}
			return err
		}
		unsubscribe = stop
		f, err = fleet.New(ctx, fleet.Config{
			Commit: w.config.Commit, Dir: w.config.Dir, LeaseTTL: w.config.LeaseTTL, Owner: w.config.Owner,
			Listener: w.config.Listener, Partitions: w.parts, Answer: w.service.Subscribe, Ready: w.ready.Done,
		})
		return err
	})
	if err != nil && errors.Is(err, ctx.Err()) {
		return nil // stopped before it began
	}
	if err != nil {
		return fmt.Errorf("run worker: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	stop, cancel := partition.NewStopTime(ctx, w.config.DrainTimeout)
	defer cancel()
	g.Go(func() error { return f.Run(ctx, stop) })
	g.Go(func() error { return w.service.Run(ctx, stop.All) })
	g.Go(func() error { w.parts.Run(ctx); return nil })
	g.Go(func() error { w.hub.Run(ctx); return nil })
	g.Go(func() error { w.spending.Run(ctx); return nil })
	g.Go(func() error { w.ensureAudit(ctx); return nil })
	if w.policies != nil {
		g.Go(func() error { w.policies.Run(ctx); return nil })
	}
	if w.config.Summarizer != nil {
		p := jobs.Pool{
			NC: w.config.Texts, JS: w.js, Texts: w.parts.Payloads.Texts, AheadBytes: partition.JobsShare(w.config.Memory),
			Summarizer: w.config.Summarizer, Listener: &w.config.Listener, Tracer: w.config.Tracer, Limiter: w.config.Limiter,
		}
		limits := func(tenant string) policy.Limits { return w.Compaction().For(tenant).Limits }
		p.Private = func(tenant string) bool { return limits(tenant).Private }
		if w.config.Writers != nil {
			p.Allow = func(ctx context.Context, a events.Address, j *events.Job) error {
				if limits(a.Tenant).Private { // a private tenant uses no model
					return nil
				}
				return w.spending.Allow(ctx, a.Tenant, w.config.Writers(j))
			}
		}
		g.Go(func() error { p.Run(ctx); return nil })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("run worker: %w", err)
	}
	return nil
}

// ensureAudit creates the audit log before an operator needs it. Sessions do not depend on it.
func (w *Worker) ensureAudit(ctx context.Context) {
	if err := topology.EnsureAudit(ctx, w.js); err != nil && ctx.Err() == nil {
		w.config.Listener.Retry(-1, "record", err)
	}
}
