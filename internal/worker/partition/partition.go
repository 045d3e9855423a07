package partition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/observe"
)

// Partition serves one partition of the log.
type Partition struct {
	set       *Set
	ID        int
	allowance int // bytes of what is decided and not committed, and of one commit
	caughtUp  func(observe.PartitionAcquired)
	drained   func()     // nothing more is committed; called when others are to go on
	failed    chan error // the first reason to stop reading

	state   sync.Mutex // guards the fields below; never held while waiting for room
	decider *decide.Decider
	decided position // of what the ledgers hold

	// Owned by the committer.
	committer   *commit.Committer
	committed   compaction.Seq
	markedAt    time.Time
	store       *kv.Store    // nil without checkpoints
	outcomesSeq uint64       // sequence in OUTCOMES that the store is at
	snapshot    uint64       // cursor of the snapshot that the store came from; 0 without one
	unsnapped   atomic.Int64 // events since the newest snapshot, as far as this owner has counted
	pending     *checkpoint  // collected, waits for its commit
	saved       time.Time    // when the last one was collected
	writing     atomic.Bool  // one is being written
	unwritten   bool         // one was given up: its rows are lost, so none may follow
	carried     *rendered    // did not fit the last commit; nil for none
	counted     bool         // what the tenants have had stored lately is read
	truncated   bool         // the log was found truncated
	last        bool         // no worker is there to go on: the last one becomes a snapshot

	background sync.WaitGroup

	mu           sync.Mutex // guards the fields below
	space        *sync.Cond // signalled when queue shrinks or the partition stops
	queue        []group    // decided, not yet committed
	queued       int        // bytes of memory that it takes, about
	end          position   // of what is decided
	intakePaused bool       // nothing more is decided before ledgers have left memory
	stopped      bool
	erasures     []erasure // under way or to be done
	waiters      map[events.Address]*waiters

	wake         chan struct{} // the queue has something
	logEmpty     chan struct{} // the log had nothing more, for the moment
	forgotten    chan struct{} // there is another erasure
	checkpointed chan struct{} // the file has moved
	handOverDue  atomic.Bool   // another worker waits for the partition: no commit begins any more
	behind       atomic.Bool   // the log holds more than a backlog of unread events
}

func newPartition(set *Set, id int, caughtUp func(observe.PartitionAcquired), drained func()) *Partition {
	p := &Partition{
		set: set, ID: id, allowance: partitionShare(set.config.Memory, set.config.Streams.Partitions), caughtUp: caughtUp, drained: drained,
		failed:    make(chan error, 1),
		decider:   decide.New(set.config.Compaction),
		waiters:   map[events.Address]*waiters{},
		wake:      make(chan struct{}, 1),
		logEmpty:  make(chan struct{}, 1),
		forgotten: make(chan struct{}, 1), checkpointed: make(chan struct{}, 1),
	}
	p.space = sync.NewCond(&p.mu)
	return p
}

// run owns the partition until ctx ends or it is lost.
func (p *Partition) run(ctx context.Context, s StopTime) error {
	err := p.serve(ctx, s)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // stopped before it began
	}
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.ID, err)
	}
	return nil
}

func (p *Partition) serve(ctx context.Context, s StopTime) error {
	defer p.set.quotas.Release(p.ID)
	if err := p.open(ctx); err != nil {
		return errors.Join(fmt.Errorf("open: %w", err), p.closeStore(ctx, false))
	}
	from := stream.LogFrom{Partition: p.ID, Seq: uint64(p.end.seq) + 1, OnError: p.retrying("read log"), OnFetched: func(seq uint64, why error) {
		observe.Call(p.set.config.Listener.Fetched, observe.Fetched{Partition: p.ID, Seq: compaction.Seq(seq), Err: why})
	}}
	stop, err := stream.ConsumeLog(ctx, p.set.js, from, p.receive)
	if err != nil {
		return errors.Join(fmt.Errorf("read log: %w", err), p.closeStore(ctx, true)) // what was replayed need not be again
	}
	stop = sync.OnceFunc(stop)
	defer context.AfterFunc(ctx, stop)() // at once: a queue that is filled on and on has no end
	work, cancel := p.commitTime(ctx, s)
	defer cancel()
	watch, unwatch := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { p.watchIdle(watch) })
	watching.Go(func() { p.watchErasures(watch) })
	err = p.commitLoop(ctx, work)
	unwatch()
	p.halt()
	stop()
	if err == nil {
		err = p.drain(work)
	}
	if err != nil && work.Err() != nil {
		err = ErrDrain
	}
	others := errors.Is(context.Cause(ctx), ErrReassigned)
	if others {
		p.drained()
	}
	watching.Wait() // for the file: to look through it, or overwrite it, may take seconds
	whole := err == nil && !p.handOverDue.Load()
	p.last = whole && ctx.Err() != nil && !others
	return errors.Join(err, p.closeStore(work, whole))
}

// ErrReassigned is why ctx ends when another worker is to go on. What is not committed
// then within handOverTime is left to it: it decides that again, while agents wait
// for nothing else.
var ErrReassigned = errors.New("partition reassigned")

const handOverTime = 20 * time.Millisecond

// commitTime returns the context of the commits, which outlives ctx: a commit that is
// given up half-way leaves it unknown whether it is stored. It ends with the
// time of a stop, and DrainTimeout after ctx where there is a hand-over only.
func (p *Partition) commitTime(ctx context.Context, s StopTime) (context.Context, context.CancelFunc) {
	work, cancel := outlive(ctx, p.set.config.DrainTimeout)
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), ErrReassigned) {
			late := time.AfterFunc(handOverTime, func() { p.handOverDue.Store(true) })
			context.AfterFunc(work, func() { late.Stop() })
		}
	})
	ended := context.AfterFunc(s.commits, cancel)
	return work, func() { ended(); cancel() }
}

// halt lets nothing more into the queue.
func (p *Partition) halt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	p.space.Broadcast()
}

func (p *Partition) fail(err error) {
	select {
	case p.failed <- err:
	default:
	}
	p.halt()
}

func (p *Partition) retrying(step string) func(error) {
	return func(err error) {
		observe.Call(p.set.config.Listener.Retrying, observe.Retrying{Partition: p.ID, Step: step, Err: err})
	}
}
