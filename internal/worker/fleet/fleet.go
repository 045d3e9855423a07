package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/events/partitions"
	"compactd/internal/kv"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/partition"

	"github.com/nats-io/nats.go"
)

// Config describes a [Fleet]. All fields are required, but Dir.
type Config struct {
	Commit     *nats.Conn // of the leases: the other connection is full of turns
	Dir        string     // of the identity; "" is a new one at each start
	LeaseTTL   time.Duration
	Owner      string
	Listener   observe.Listener
	Partitions *partition.Set
	// Answer answers other workers about a partition, until stop is called.
	Answer func(ctx context.Context, partition int) (stop func())
	// Ready is called once, when everything that this worker should hold is served.
	Ready func()
}

// Fleet serves this worker's share of the partitions: it takes a lease, then the partition, and releases both when
// another worker should have them. Leases keep workers apart; if two serve one partition all the same, the fence
// refuses the commits of the former.
type Fleet struct {
	config          Config
	self            coord.Member
	members         *coord.Members
	leases          *coord.Leases
	releaseIdentity func()

	changed chan struct{}   // the membership changed, or a partition is caught up
	drained chan *heldLease // nothing more is committed in them
	ended   chan ending

	// Owned by Run.
	membership *membership
	unwatch    func()
	wanted     map[int]bool
	held       map[int]*heldLease
	heldAt     map[int]uint64 // the revision of the lease that this process held last
	coolDown   map[int]bool   // lost since the last beat: two workers could take them from each other forever
	isReady    bool
	slowLook   bool // the last look at a growth got no answer in time: one alone delays it, and is no fault
	stop       partition.StopTime
	shutting   bool

	releases sync.WaitGroup // of a stop
}

// heldLease is the time of one lease.
type heldLease struct {
	lease    *coord.Lease
	stop     context.CancelCauseFunc // lets the partition commit, checkpoint and end
	ending   bool                    // it is about to be stopped
	released bool                    // the lease is released

	acquired atomic.Bool // the listener has the acquisition, and the partition is served
}

// ending reports that a partition is no longer served.
type ending struct {
	partition int
	err       error
}

// New joins the fleet and reads its members.
func New(ctx context.Context, c Config) (*Fleet, error) {
	js, err := jetstream.New(c.Commit) // the other connection is full of turns
	if err != nil {
		return nil, err
	}
	name, release, err := openIdentity(ctx, c.Dir)
	if err != nil {
		return nil, err
	}
	if err := c.Partitions.RemoveCopies(); err != nil {
		release()
		return nil, err
	}
	f := &Fleet{
		config: c, self: coord.Member{Name: name, Owner: c.Owner}, releaseIdentity: release,
		members: coord.NewMembers(js, c.LeaseTTL), leases: coord.NewLeases(js, c.LeaseTTL),
		changed: make(chan struct{}, 1), ended: make(chan ending, partitions.Most),
		drained: make(chan *heldLease, partitions.Most),
		held:    map[int]*heldLease{}, heldAt: map[int]uint64{}, coolDown: map[int]bool{},
	}
	if err = f.members.Heartbeat(ctx, f.self); err == nil {
		f.membership, f.unwatch, err = watchMembership(ctx, f.members, f.leases, f.changed)
	}
	if err != nil {
		release()
		return nil, err
	}
	return f, nil
}

// Run serves until ctx ends, then hands everything over, in the time that s has for it.
func (f *Fleet) Run(ctx context.Context, s partition.StopTime) error {
	f.stop = s
	defer f.releaseIdentity()
	defer func() { f.unwatch() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(f.config.LeaseTTL / 3)
	defer tick.Stop()
	var failed error
	for failed == nil && ctx.Err() == nil {
		if failed = f.reconcile(ctx); failed != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-f.changed:
		case t := <-f.drained:
			f.release(t)
		case e := <-f.ended:
			failed = f.finish(e)
		case <-tick.C:
			f.renewAll(ctx)
		}
	}
	cancel()
	return errors.Join(failed, f.leave())
}

// reconcile acquires what this worker should hold and is free, and hands over what
// another one should hold.
func (f *Fleet) reconcile(ctx context.Context) error {
	f.assign()
	for id, t := range f.held {
		if !f.wanted[id] {
			f.end(id, t, partition.ErrReassigned)
		}
	}
	for id := range f.config.Partitions.Count() {
		if !f.wanted[id] || f.held[id] != nil || f.coolDown[id] {
			continue
		}
		h := f.membership.holderOf(id)
		if h.Holder != (coord.Holder{}) && h.Member != f.self.Name {
			continue
		}
		if h.byCopy(f.self, f.heldAt[id]) {
			return fmt.Errorf("%s runs with the name of this worker, %s: one of the two has a copy of the other's directory; delete its %s",
				h.Owner, f.self.Name, identityFile)
		}
		if !f.acquire(ctx, id) {
			break
		}
	}
	f.reportReady()
	return nil
}

// end lets a partition end. Where others are to go on it is served until they have a
// snapshot to begin from.
func (f *Fleet) end(id int, t *heldLease, why error) {
	if t.ending {
		return
	}
	t.ending = true
	go func() {
		if why != nil {
			f.config.Partitions.BeforeHandOver(f.stop.All, id)
		}
		t.stop(why)
	}()
}

// assign finds out what this worker should hold.
func (f *Fleet) assign() {
	f.wanted = map[int]bool{}
	t := f.config.Partitions.Table()
	for _, id := range assign(f.membership.members(f.self.Name), t.First(), t.Count())[f.self.Name] {
		f.wanted[id] = true
	}
	for id := range t.Count() {
		f.config.Partitions.Assign(id, f.wanted[id])
	}
}

// reportReady reports once that everything this worker should hold is served.
func (f *Fleet) reportReady() {
	if f.isReady {
		return
	}
	for id := range f.wanted {
		if t := f.held[id]; t == nil || !t.acquired.Load() {
			return
		}
	}
	f.isReady = true
	observe.Call(f.config.Listener.ShareAcquired, observe.ShareAcquired{Partitions: len(f.wanted)})
	f.config.Ready()
}

// acquire takes a lease and serves its partition. Where another worker has the lease it does
// nothing: the membership shows when it is free. It returns false when the server cannot be
// reached: the next lease would wait in vain too, while those held must be renewed.
func (f *Fleet) acquire(ctx context.Context, id int) bool {
	limited, cancel := context.WithTimeout(ctx, f.config.LeaseTTL/3) // a longer one would delay the next renewal
	defer cancel()
	lease, err := f.leases.Acquire(limited, id, coord.Holder{Member: f.self.Name, Owner: f.self.Owner})
	if err != nil {
		if !errors.Is(err, coord.ErrHeld) && ctx.Err() == nil {
			f.retrying(id, "acquire lease", err)
		}
		return !jsapi.Unreachable(err)
	}
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx)) // leave ends it, with a cause
	t := &heldLease{lease: lease, stop: stop}
	f.held[id], f.heldAt[id] = t, lease.Revision()
	go func() {
		defer stop(nil)
		f.ended <- ending{id, f.serve(ctx, t)}
	}()
	return true
}

// serve serves a partition until ctx ends or it is lost.
func (f *Fleet) serve(ctx context.Context, t *heldLease) error {
	id := t.lease.Partition
	for pause := time.Duration(0); ; pause = min(max(2*pause, firstReopen), lastReopen) {
		began := time.Now()
		stopAnswering := func() {}
		unserve := func() {
			t.acquired.Store(false)
			f.config.Partitions.Unserve(id)
			stopAnswering()
		}
		err := f.config.Partitions.Serve(ctx, f.stop, id, func(e observe.PartitionAcquired) {
			stopAnswering = f.config.Answer(ctx, id)
			observe.Call(f.config.Listener.PartitionAcquired, e)
			t.acquired.Store(true)
			retry.Wake(f.changed)
		}, func() {
			unserve()
			f.drained <- t
		})
		unserve()
		f.config.Partitions.DropErasedFile(id)
		if time.Since(began) > lastReopen { // at once where it went well for a while
			pause = 0
		}
		again := reopens(err) && ctx.Err() == nil
		if !again {
			observe.Call(f.config.Listener.PartitionReleased, observe.PartitionReleased{Partition: id, Err: err, Reason: endOf(ctx)})
			if recovers(err) { // by the next start
				return nil
			}
			return err
		}
		observe.Call(f.config.Listener.PartitionFailed, observe.PartitionFailed{Partition: id, Err: err, Pause: pause})
		select {
		case <-ctx.Done():
			observe.Call(f.config.Listener.PartitionReleased, observe.PartitionReleased{Partition: id, Reason: endOf(ctx)})
			return nil
		case <-time.After(pause):
		}
	}
}

// endOf is why a partition is no longer to be served, "" if it still is.
func endOf(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return ""
	case errors.Is(cause, context.Canceled):
		return "stop"
	default:
		return cause.Error()
	}
}

// recovers reports whether an error means that the streams hold all that can be
// known: a commit that seemed lost was stored after all, or the file of the ledgers is
// damaged.
func recovers(err error) bool {
	return errors.Is(err, commit.ErrDiverged) || errors.Is(err, kv.ErrDamaged)
}

// reopens reports whether a partition that ended with an error is opened again while its
// lease is held: otherwise one bad partition could stop every worker. A recreated log
// concerns all partitions and is not retried.
func reopens(err error) bool {
	return err != nil && !leavesToOthers(err) && !errors.Is(err, partition.ErrOtherLog)
}

// leavesToOthers reports whether an error means that another worker serves the partition, or
// that it cannot be acquired now. Its lease is given up.
func leavesToOthers(err error) bool {
	return errors.Is(err, commit.ErrFenced) || errors.Is(err, partition.ErrDrain) || errors.Is(err, partition.ErrLogBehind) || jsapi.Unreachable(err)
}

// A partition that has to be opened again and again, as on a failing disk, waits
// for the first, then for twice as long each time, at most for the last: every try
// reads the log.
const (
	firstReopen = 100 * time.Millisecond
	lastReopen  = 30 * time.Second
)

// release gives up the lease of a partition that is being stopped: the next owner need
// not wait until the file is closed.
func (f *Fleet) release(t *heldLease) {
	if t.released {
		return
	}
	t.released = true
	f.bestEffort(t.lease.Partition, "release lease", func(ctx context.Context) error { return f.leases.Release(ctx, t.lease) })
}

// finish gives up the lease of a partition that is no longer served. A partition that
// another worker took over is no failure, nor what a hand-over could not commit in time:
// the next owner decides it again. One that could not be opened for want of a server is
// opened later. Any other error, before the end, ends the worker.
func (f *Fleet) finish(e ending) error {
	f.release(f.held[e.partition])
	f.heldAt[e.partition] = max(f.heldAt[e.partition], f.held[e.partition].lease.Revision())
	delete(f.held, e.partition)
	f.coolDown[e.partition] = e.err != nil
	switch {
	case errors.Is(e.err, commit.ErrFenced):
		return nil
	case !f.shutting && leavesToOthers(e.err):
		return nil // the listener has the error
	default:
		return e.err
	}
}

// bestEffortTime bounds a release. The lease would expire by itself, later.
const bestEffortTime = time.Second

// bestEffort sends one message of a release. During a stop it does not wait for the answer, except
// at the end: otherwise each message without an answer would cost its time.
func (f *Fleet) bestEffort(partition int, step string, send func(context.Context) error) {
	if !f.config.Commit.IsConnected() {
		return
	}
	do := func() {
		ctx, cancel := context.WithTimeout(f.stop.All, bestEffortTime)
		defer cancel()
		if err := send(ctx); err != nil {
			f.retrying(partition, step, err)
		}
	}
	if f.shutting {
		f.releases.Go(do)
		return
	}
	do()
}

// renewAll announces that this worker runs, and renews its leases, all at once: one that is
// not answered must not cost the others. A lease that cannot be renewed because the server
// does not answer is kept: no other worker can get it then.
func (f *Fleet) renewAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.config.LeaseTTL/3)
	defer cancel()
	clear(f.coolDown)
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		if err := f.members.Heartbeat(ctx, f.self); err != nil && !errors.Is(err, context.Canceled) { // which is the stop
			f.retrying(-1, "heartbeat", err)
		}
	})
	asking.Go(func() {
		err := f.config.Partitions.Follow(ctx)
		slow := jsapi.NoAnswer(err)
		if err != nil && !errors.Is(err, context.Canceled) && (!slow || f.slowLook) { // canceled is the stop
			f.retrying(-1, "follow the growth of the log", err)
		}
		f.slowLook = slow
	})
	if f.membership.err() != nil {
		asking.Go(func() { f.watchAgain(ctx) })
	}
	for id, t := range f.held {
		if !t.released {
			asking.Go(func() { f.renew(ctx, id, t) })
		}
	}
}

func (f *Fleet) renew(ctx context.Context, id int, t *heldLease) {
	err := f.leases.Renew(ctx, t.lease)
	if errors.Is(err, coord.ErrLeaseLost) {
		t.stop(fmt.Errorf("%w: %w", partition.ErrReassigned, err))
	}
	if err != nil && !errors.Is(err, context.Canceled) { // which is the stop
		f.retrying(id, "renew lease", err)
	}
}

// watchAgain watches again where changes may have been missed.
func (f *Fleet) watchAgain(ctx context.Context) {
	v, stop, err := watchMembership(ctx, f.members, f.leases, f.changed)
	if err != nil {
		f.retrying(-1, "watch the fleet", err)
		return
	}
	f.unwatch()
	f.membership, f.unwatch = v, stop
}

// leave lets the others begin, while the partitions commit, checkpoint and end, in the time
// of the stop. No lease is renewed on the way: a server that does not answer would cost the
// time that the partitions need, and one that ends early costs only work, since commits are
// fenced. Without another worker there is time to commit everything.
func (f *Fleet) leave() error {
	f.shutting = true
	defer f.releases.Wait()
	var why error
	if len(f.membership.members(f.self.Name)) > 1 {
		why = partition.ErrReassigned
	}
	for id, t := range f.held {
		f.end(id, t, why)
	}
	f.bestEffort(-1, "leave", func(ctx context.Context) error { return f.members.Leave(ctx, f.self.Name) })
	var failed error
	for len(f.held) > 0 {
		select {
		case t := <-f.drained:
			f.release(t)
		case e := <-f.ended:
			failed = errors.Join(failed, f.finish(e))
		}
	}
	return failed
}

func (f *Fleet) retrying(partition int, step string, err error) {
	observe.Call(f.config.Listener.Retrying, observe.Retrying{Partition: partition, Step: step, Err: err})
}
