package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/audit"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/payload"
	"compactd/internal/worker/storelimit"
)

// Config configures the partitions of one worker. worker.Config explains the fields without a comment.
type Config struct {
	Read, Commit *nats.Conn
	Texts        *nats.Conn // reads texts of histories
	Streams      *topology.Streams
	Compaction   *compaction.Config
	Owner        string
	Listener     observe.Listener
	Tracer       observe.Tracer // nil for none
	Audit        *audit.Log     // of manual actions; nil records nothing
	Limiter      *limit.Limiter // shares the processors with requests

	Dir              string
	Sync             bool
	CheckpointEvery  time.Duration
	CheckpointEvents int
	SnapshotEvery    time.Duration

	MaxLedgers     int
	MaxLedgerBytes int
	Memory         int64
	OutcomeBytes   int64
	MaxAhead       int
	MarkerEvery    time.Duration
	DrainTimeout   time.Duration
}

// Set holds the partitions of a worker and their shared state: texts, limits of tenants and
// memory, snapshots.
type Set struct {
	config    Config
	js        jetstream.JetStream
	Payloads  *payload.Renderer
	Outcomes  *storelimit.Outcomes
	Log       *storelimit.Log
	snapshots *snapshots
	splitting chan struct{}                     // one slot: a child holds it during its split and recovery
	changed   atomic.Pointer[compaction.Config] // replaces config.Compaction; nil before a change
	storing   sync.Mutex                        // held for one checkpoint: bbolt maps every page that it replaces

	log        atomic.Pointer[logTable]
	refreshing sync.Mutex
}

// logTable is the known table of partitions. Their number only grows.
type logTable struct {
	table partitions.Table
	slots []*slot // by number
}

// slot is the worker's state of a partition, whether it serves it or not.
type slot struct {
	assigned        atomic.Bool               // this worker should serve it
	erasedElsewhere atomic.Bool               // its file is from before an erasure
	served          atomic.Pointer[Partition] // nil until it is caught up
}

// NewSet returns a set that serves no partition yet.
func NewSet(js jetstream.JetStream, c Config) *Set {
	if c.MaxLedgerBytes == 0 {
		c.MaxLedgerBytes = ledgersShare(c.Memory)
	}
	set := &Set{
		config: c, js: js, Payloads: payload.NewRenderer(c.Texts, payloadsShare(c.Memory)), splitting: make(chan struct{}, 1),
	}
	set.install(c.Streams.Partitions)
	set.snapshots = &snapshots{set: set, store: snapshot.New(js), slot: make(chan struct{}, 1)}
	set.Log = storelimit.NewLog(js, int64(c.Streams.Log.Bytes), c.Streams.Log.MaxBytes)
	set.Outcomes = storelimit.NewOutcomes(storelimit.Config{
		JS: js, PerHour: c.OutcomeBytes, Partitions: set.Count, Assigned: set.share,
		Held: int64(c.Streams.Outcomes.Bytes), Most: c.Streams.Outcomes.MaxBytes,
		Limited: func(e observe.OutcomesLimited) { observe.Call(c.Listener.OutcomesLimited, e) },
	})
	return set
}

// Compaction returns the config in force.
func (set *Set) Compaction() *compaction.Config {
	return cmp.Or(set.changed.Load(), set.config.Compaction)
}

// UseConfig stores a config and puts it in force from the next event of each partition on. The former config
// stays readable while the log has an event that was decided under it, except for those of the last minute.
func (set *Set) UseConfig(ctx context.Context, c *compaction.Config) error {
	before := set.Compaction()
	c, err := c.WithRetention(int64(set.config.Streams.MaxAge / time.Second))
	if err != nil || c.Hash() == before.Hash() {
		return err
	}
	old := set.renewEvery() / 2
	if err := errors.Join(set.putConfig(ctx, before, min(old, lastRenewal)), set.putConfig(ctx, c, old)); err != nil {
		return err
	}
	set.changed.Store(c)
	return nil
}

func (set *Set) putConfig(ctx context.Context, c *compaction.Config, renew time.Duration) error {
	return commit.PutConfig(ctx, set.js, c.Hash(), c.Text(), renew)
}

// install sets the first table, with a slot for each partition.
func (set *Set) install(t partitions.Table) {
	set.log.Store(&logTable{t, addSlots(nil, t.Count())})
}

func addSlots(slots []*slot, count int) []*slot {
	for slots = slices.Clone(slots); len(slots) < count; {
		slots = append(slots, &slot{})
	}
	return slots
}

// learn adds a stored split to the table.
func (set *Set) learn(s partitions.Split) error {
	return set.update(func(t partitions.Table) (partitions.Table, error) { return t.With(s) })
}

// update replaces the table by the result of next.
func (set *Set) update(next func(partitions.Table) (partitions.Table, error)) error {
	for {
		before := set.log.Load()
		t, err := next(before.table)
		if err != nil {
			return fmt.Errorf("partitions of the log: %w", err)
		}
		if set.log.CompareAndSwap(before, &logTable{t, addSlots(before.slots, t.Count())}) {
			return nil
		}
	}
}

// Follow reads a growth of the log from SESSIONS and records in SESSIONS the splits that markers hold. Once each
// partition is split, that completes the growth.
func (set *Set) Follow(ctx context.Context) error {
	t, err := topology.Record(ctx, set.js, set.Table())
	if err != nil {
		return err
	}
	return set.update(t.Merge)
}

// Refresh reads the table again for a session of partition p that another worker refused as moved. The table stays
// if no split is stored.
func (set *Set) Refresh(ctx context.Context, p int, a events.Address) error {
	set.refreshing.Lock() // one read serves all waiting callers
	defer set.refreshing.Unlock()
	if set.Of(a) != p || ctx.Err() != nil {
		return ctx.Err()
	}
	streams, err := topology.Describe(ctx, set.js)
	if err == nil {
		err = set.update(streams.Partitions.Merge)
	}
	if err != nil {
		return err
	}
	m, err := commit.LastMarker(ctx, set.config.Read, p)
	if err != nil {
		return err
	}
	return set.learn(m.Split)
}

// Decides is [partitions.Table.Decides]; if that is false, it first reads the parent's stored split.
func (set *Set) Decides(ctx context.Context, id int) (bool, error) {
	if set.Table().Decides(id) {
		return true, nil
	}
	lineage := set.Table().Lineage(id)
	m, err := commit.LastMarker(ctx, set.config.Read, lineage[len(lineage)-1].Parent)
	if err == nil {
		err = set.learn(m.Split)
	}
	return set.Table().Decides(id), err
}

// Table returns this worker's table of partitions: the partition that decides an event.
func (set *Set) Table() partitions.Table { return set.log.Load().table }

func (set *Set) slot(id int) *slot { return set.log.Load().slots[id] }

// Count returns the number of partitions of the log.
func (set *Set) Count() int { return set.Table().Count() }

// Of returns the partition that decides the next event of a session.
func (set *Set) Of(a events.Address) int { return set.Table().Of(a) }

// At returns a partition if this worker serves it, else nil.
func (set *Set) At(id int) *Partition { return set.slot(id).served.Load() }

// Unserve marks a partition as no longer served.
func (set *Set) Unserve(id int) { set.slot(id).served.Store(nil) }

// Assign sets whether this worker should serve a partition.
func (set *Set) Assign(id int, yes bool) { set.slot(id).assigned.Store(yes) }

// IsAssigned reports whether this worker should serve a partition.
func (set *Set) IsAssigned(id int) bool { return set.slot(id).assigned.Load() }

// share returns the number of partitions that this worker should serve, at least 1.
func (set *Set) share() (n int) {
	for id := range set.Count() {
		if set.IsAssigned(id) {
			n++
		}
	}
	return max(n, 1)
}

// Join stores the config in force for other workers, and applies erasures to the files of the
// directory. stop ends the watch for further erasures.
func (set *Set) Join(ctx context.Context) (stop func(), err error) {
	if err := set.putConfig(ctx, set.Compaction(), set.renewEvery()/2); err != nil {
		return nil, err
	}
	if stop, err = set.subscribeErasures(); err != nil {
		return nil, err
	}
	if err = set.pruneErased(ctx); err != nil { // the subscription covers later erasures
		stop()
		return nil, err
	}
	return stop, nil
}

// Run performs the work for all partitions until ctx ends: it renews the config, follows the
// fill of the streams, releases memory, and takes snapshots.
func (set *Set) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { set.renewConfig(ctx) })
	all.Go(func() { set.Outcomes.Run(ctx) })
	all.Go(func() { set.Log.Run(ctx) })
	all.Go(func() { set.releaseUnused(ctx) })
	if set.snapshots.enabled() {
		all.Go(func() { set.snapshots.run(ctx) })
	}
	all.Wait()
}

// Serve serves a partition until ctx ends or it fails. It calls caughtUp when the partition takes
// turns, and drained after the last commit before a hand-over.
func (set *Set) Serve(ctx context.Context, s StopTime, id int, caughtUp func(observe.PartitionAcquired), drained func()) error {
	err := newPartition(set, id).serve(ctx, s, caughtUp, drained)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // stopped before it began
	}
	if err != nil {
		return fmt.Errorf("partition %d: %w", id, err)
	}
	return nil
}
