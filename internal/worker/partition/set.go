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
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/payload"
	"compactd/internal/worker/storelimit"
)

// Config describes the partitions of one worker; worker.Config explains the fields that
// it has too.
type Config struct {
	Read, Commit *nats.Conn
	Texts        *nats.Conn // reads texts of histories
	Streams      *topology.Streams
	Compaction   *compaction.Config
	Owner        string
	Listener     observe.Listener
	Tracer       observe.Tracer // nil for none
	Audit        *audit.Log     // of who acts by hand; nil records nothing
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

// Set is the partitions of a worker, and what they share: texts, bounds of tenants and
// memory, snapshots.
type Set struct {
	config    Config
	js        jetstream.JetStream
	Payloads  *payload.Renderer
	Outcomes  *storelimit.Outcomes
	Log       *storelimit.Log
	snapshots *snapshots
	splitting chan struct{}                     // taken by a child from before its split until it is caught up
	changed   atomic.Pointer[compaction.Config] // in force in place of that of config; nil before a change
	storing   sync.Mutex                        // held for one checkpoint: bbolt maps every page that it replaces

	log        atomic.Pointer[logView]
	refreshing sync.Mutex
}

// logView is what is known of the partitions of the log. There are only more with time.
type logView struct {
	table partitions.Table
	slots []*slot // by number
}

// slot is what a worker has of a partition.
type slot struct {
	assigned        atomic.Bool               // this worker should serve it
	erasedElsewhere atomic.Bool               // its file is from before an erasure
	served          atomic.Pointer[Partition] // nil while it is not caught up
}

// NewSet returns partitions of which none is served.
func NewSet(js jetstream.JetStream, c Config) *Set {
	if c.MaxLedgerBytes == 0 {
		c.MaxLedgerBytes = ledgersShare(c.Memory)
	}
	set := &Set{
		config: c, js: js, Payloads: payload.NewRenderer(c.Texts, payloadsShare(c.Memory)), splitting: make(chan struct{}, 1),
	}
	set.install(c.Streams.Partitions)
	set.snapshots = newSnapshots(set)
	set.Log = storelimit.NewLog(js, int64(c.Streams.Log.Bytes), c.Streams.Log.MaxBytes)
	set.Outcomes = storelimit.NewOutcomes(storelimit.Config{
		JS: js, PerHour: c.OutcomeBytes, Partitions: set.Count, Assigned: set.share,
		Held: int64(c.Streams.Outcomes.Bytes), Most: c.Streams.Outcomes.MaxBytes,
		Limited: func(e observe.OutcomesLimited) { observe.Call(c.Listener.OutcomesLimited, e) },
	})
	return set
}

// Compaction is the config in force.
func (set *Set) Compaction() *compaction.Config {
	return cmp.Or(set.changed.Load(), set.config.Compaction)
}

// UseConfig puts another config in force, once others can read it, from the next event of each partition on. The one
// before stays readable as long as the log has an event that was decided under it.
func (set *Set) UseConfig(ctx context.Context, c *compaction.Config) error {
	before := set.Compaction()
	c, err := c.WithRetention(int64(set.config.Streams.MaxAge / time.Second))
	if err != nil || c.Hash() == before.Hash() {
		return err
	}
	if err := errors.Join(set.putConfig(ctx, before, set.renewEvery()/2), set.putConfig(ctx, c, 0)); err != nil {
		return err
	}
	set.changed.Store(c)
	return nil
}

func (set *Set) putConfig(ctx context.Context, c *compaction.Config, renew time.Duration) error {
	return commit.PutConfig(ctx, set.js, c.Hash(), c.Text(), renew)
}

// install makes a table the one that is known, with a slot for each partition.
func (set *Set) install(t partitions.Table) {
	set.log.Store(&logView{t, addSlots(nil, t.Count())})
}

func addSlots(slots []*slot, count int) []*slot {
	for slots = slices.Clone(slots); len(slots) < count; {
		slots = append(slots, &slot{})
	}
	return slots
}

// learn adds a split that is stored to what is known.
func (set *Set) learn(s partitions.Split) error {
	return set.update(func(t partitions.Table) (partitions.Table, error) { return t.With(s) })
}

// update replaces the table by one that has more.
func (set *Set) update(next func(partitions.Table) (partitions.Table, error)) error {
	for {
		before := set.log.Load()
		t, err := next(before.table)
		if err != nil {
			return fmt.Errorf("partitions of the log: %w", err)
		}
		if set.log.CompareAndSwap(before, &logView{t, addSlots(before.slots, t.Count())}) {
			return nil
		}
	}
}

// Follow takes in what SESSIONS has about a growth of the log, and adds what markers have of it: once each partition is
// split, that completes the growth.
func (set *Set) Follow(ctx context.Context) error {
	t, err := topology.Record(ctx, set.js, set.Table())
	if err != nil {
		return err
	}
	return set.update(t.Merge)
}

// Refresh reads where a session has moved to that another worker does not take for one of partition p any more. It
// leaves the table as it is where nothing of that is stored.
func (set *Set) Refresh(ctx context.Context, p int, a events.Address) error {
	set.refreshing.Lock() // one read is enough for all that wait
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

// Decides is [partitions.Table.Decides], by what is stored now.
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

// Table is which partition decides an event, as far as this worker has it.
func (set *Set) Table() partitions.Table { return set.log.Load().table }

func (set *Set) slot(id int) *slot { return set.log.Load().slots[id] }

// Count is the number of partitions of the log.
func (set *Set) Count() int { return set.Table().Count() }

// Of is the number of the partition that decides the next event of a session.
func (set *Set) Of(a events.Address) int { return set.Table().Of(a) }

// At returns a partition that this worker serves, nil for one that it does not.
func (set *Set) At(id int) *Partition { return set.slot(id).served.Load() }

// Unserve notes that a partition is no longer served.
func (set *Set) Unserve(id int) { set.slot(id).served.Store(nil) }

// Assign notes whether this worker should serve a partition.
func (set *Set) Assign(id int, yes bool) { set.slot(id).assigned.Store(yes) }

// IsAssigned reports whether this worker should serve a partition.
func (set *Set) IsAssigned(id int) bool { return set.slot(id).assigned.Load() }

// share is how many partitions this worker should serve, 1 at least.
func (set *Set) share() (n int) {
	for id := range set.Count() {
		if set.IsAssigned(id) {
			n++
		}
	}
	return max(n, 1)
}

// Join makes the config in force readable for others, and brings the files of the
// directory up to date with erasures. stop ends the watch for further ones.
func (set *Set) Join(ctx context.Context) (stop func(), err error) {
	if err := set.putConfig(ctx, set.Compaction(), 0); err != nil {
		return nil, err
	}
	if stop, err = set.subscribeErasures(); err != nil {
		return nil, err
	}
	if err = set.pruneErased(ctx); err != nil { // an erasure that comes too late for it is received
		stop()
		return nil, err
	}
	return stop, nil
}

// Run does what concerns all partitions until ctx ends: it renews the config, follows how
// full the streams are, gives memory back, and takes snapshots.
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

// Serve serves a partition until ctx ends or it fails. caughtUp is called when it takes
// turns, drained when nothing more is committed before a hand-over.
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
