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

// Config configures a [Fleet]. All fields except Dir are required.
type Config struct {
	Commit     *nats.Conn // for the leases: the other connection is full of turns
	Dir        string     // of the identity; "" means a new identity at each start
	LeaseTTL   time.Duration
	Owner      string
	Listener   observe.Listener
	Partitions *partition.Set
	// Answer starts to answer other workers about a partition, until stop is called.
	Answer func(ctx context.Context, partition int) (stop func())
	// Ready is called once, when all partitions of this worker's share are served.
	Ready func()
}

// Fleet serves this worker's share of the partitions: it takes a lease, then the partition, and releases both when
// another worker should have them. Leases keep workers apart. If two workers serve one partition anyway, the fence
// refuses the commits of the former owner.
type Fleet struct {
	config          Config
	self            coord.Member
	members         *coord.Members
	leases          *coord.Leases
	releaseIdentity func()

	changed chan struct{}   // the membership changed, or a partition is caught up
	drained chan *heldLease // leases of partitions after their last commit
	ended   chan ending

	// Owned by Run.
	membership *membership
	unwatch    func()
	wanted     map[int]bool
	held       map[int]*heldLease
	heldAt     map[int]uint64 // revision of the last lease of this process
	coolDown   map[int]bool   // ended with an error since the last heartbeat: prevents endless mutual take-overs
	isReady    bool
	slowLook   bool // the last read of a growth timed out; only the second in a row is reported
	stop       partition.StopTime
	shutting   bool

	releases sync.WaitGroup // of a stop
}

// heldLease is a lease while this worker holds it.
type heldLease struct {
	lease    *coord.Lease
	stop     context.CancelCauseFunc // lets the partition commit, checkpoint and end
	ending   bool                    // stop is or will be called
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

// Run serves until ctx ends, then hands all partitions over, within the time limits of s.
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

// reconcile acquires the free partitions of this worker's share, and hands over those of
// other shares.
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

// end stops a partition. Before a hand-over it keeps serving until a snapshot for the next owner
// is stored.
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

// assign computes this worker's share.
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

// reportReady reports once that all partitions of this worker's share are served.
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

// acquire takes a lease and serves its partition. If another worker has the lease, it does
// nothing: the membership shows when it is free. It returns false if the server cannot be
// reached: an attempt for the next lease would only delay the renewal of the held ones.
func (f *Fleet) acquire(ctx context.Context, id int) bool {
	limited, cancel := context.WithTimeout(ctx, f.config.LeaseTTL/3) // a longer wait would delay the next renewal
	defer cancel()
	lease, err := f.leases.Acquire(limited, id, coord.Holder{Member: f.self.Name, Owner: f.self.Owner})
	if err != nil {
		if !errors.Is(err, coord.ErrHeld) && ctx.Err() == nil {
			f.config.Listener.Retry(id, "acquire lease", err)
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

// serve serves a partition until ctx ends or an error leaves it to others. It opens the partition again
// after other errors.
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
		if time.Since(began) > lastReopen { // no pause after a longer success
			pause = 0
		}
		again := reopens(err) && ctx.Err() == nil
		if !again {
			observe.Call(f.config.Listener.PartitionReleased, observe.PartitionReleased{Partition: id, Err: err, Reason: endOf(ctx)})
			if recovers(err) { // the next start recovers the partition
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

// endOf returns the reason to end a partition, or "" if it is still to be served.
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

// recovers reports whether a new start recovers from an error without loss: a commit with an
// unknown result was stored, or the ledger file is damaged.
func recovers(err error) bool {
	return errors.Is(err, commit.ErrDiverged) || errors.Is(err, kv.ErrDamaged)
}

// reopens reports whether a partition that ended with an error is opened again under the same lease.
// Otherwise one bad partition could stop every worker. A recreated log concerns all partitions and is
// not retried.
func reopens(err error) bool {
	return err != nil && !leavesToOthers(err) && !errors.Is(err, partition.ErrOtherLog)
}

// leavesToOthers reports whether an error means that another worker serves the partition, or that
// it cannot be acquired now. The lease is then released.
func leavesToOthers(err error) bool {
	return errors.Is(err, commit.ErrFenced) || errors.Is(err, partition.ErrDrain) || errors.Is(err, partition.ErrLogBehind) || jsapi.Unreachable(err)
}

// The pause before a failed partition is opened again, as on a failing disk, begins with firstReopen
// and doubles up to lastReopen: every attempt reads the log.
const (
	firstReopen = 100 * time.Millisecond
	lastReopen  = 30 * time.Second
)

// release releases the lease of a partition that is being stopped: the next owner need not wait
// until the file is closed.
func (f *Fleet) release(t *heldLease) {
	if t.released {
		return
	}
	t.released = true
	f.bestEffort(t.lease.Partition, "release lease", func(ctx context.Context) error { return f.leases.Release(ctx, t.lease) })
}

// finish releases the lease of a partition that is no longer served, and returns an error that ends
// the worker. A take-over by another worker does not end it. Before a stop, two more errors do not:
// commits that timed out in a hand-over, since the next owner decides their events again, and a
// partition that could not be opened without a server, which is opened later.
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

// bestEffortTime limits a release. The lease would expire later anyway.
const bestEffortTime = time.Second

// bestEffort sends one message of a release. During a stop it sends in the background, and leave waits for
// all answers at its end: otherwise each message without an answer would cost its timeout.
func (f *Fleet) bestEffort(partition int, step string, send func(context.Context) error) {
	if !f.config.Commit.IsConnected() {
		return
	}
	do := func() {
		ctx, cancel := context.WithTimeout(f.stop.All, bestEffortTime)
		defer cancel()
		if err := send(ctx); err != nil {
			f.config.Listener.Retry(partition, step, err)
		}
	}
	if f.shutting {
		f.releases.Go(do)
		return
	}
	do()
}

// renewAll sends a heartbeat and renews the leases, all at once: a missing answer must not delay the
// others. A lease stays held if the server does not answer its renewal: if another worker gets it
// meanwhile, the fence refuses the commits of this one.
func (f *Fleet) renewAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.config.LeaseTTL/3)
	defer cancel()
	clear(f.coolDown)
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		if err := f.members.Heartbeat(ctx, f.self); err != nil && !errors.Is(err, context.Canceled) { // canceled by a stop
			f.config.Listener.Retry(-1, "heartbeat", err)
		}
	})
	asking.Go(func() {
		err := f.config.Partitions.Follow(ctx)
		slow := jsapi.NoAnswer(err)
		if err != nil && !errors.Is(err, context.Canceled) && (!slow || f.slowLook) { // canceled by a stop
			f.config.Listener.Retry(-1, "follow the growth of the log", err)
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
	if err != nil && !errors.Is(err, context.Canceled) { // canceled by a stop
		f.config.Listener.Retry(id, "renew lease", err)
	}
}

// watchAgain replaces a watch that may have missed changes.
func (f *Fleet) watchAgain(ctx context.Context) {
	v, stop, err := watchMembership(ctx, f.members, f.leases, f.changed)
	if err != nil {
		f.config.Listener.Retry(-1, "watch the fleet", err)
		return
	}
	f.unwatch()
	f.membership, f.unwatch = v, stop
}

// leave ends the membership, so that others can begin, while the partitions commit, checkpoint and
// end within the time of the stop. It renews no lease: a server that does not answer would use up the
// time of the partitions, and an expired lease costs only repeated work, since commits are
// fenced. Only with another worker the end is a hand-over, which commits less.
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
