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

	"compactd/internal/broker/commit"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
)

// Partition serves one partition of the log: it holds its components and their phase.
// Any goroutine may call its exported methods.
type Partition struct {
	scope
	life   lifecycle
	born   bool       // it was split off, and this is its first owner
	failed chan error // the first error, which ends serve

	*ledgers     // Inspect, Sessions
	*queue       // HasCommitted, Await
	file         *file
	intake       *intake
	committer    *committer
	checkpointer *checkpointer
	eraser       *eraser
}

func newPartition(set *Set, id int) *Partition {
	s, allowance := scope{id, set}, partitionShare(set.config.Memory, set.Count())
	p := &Partition{scope: s, failed: make(chan error, 1)}
	p.file = &file{scope: s, moved: make(chan struct{}, 1)}
	p.ledgers = &ledgers{scope: s, life: &p.life}
	p.ledgers.begin(nil, position{})
	p.queue = newQueue(set.config.MaxAhead, allowance)
	p.intake = &intake{scope: s, ledgers: p.ledgers, queue: p.queue, fail: p.fail, logEmpty: make(chan struct{}, 1)}
	p.eraser = &eraser{scope: s, file: p.file, ledgers: p.ledgers, queue: p.queue, stores: stores{p.file}, added: make(chan struct{}, 1)}
	p.committer = &committer{scope: s, queue: p.queue, eraser: p.eraser, allowance: allowance}
	p.checkpointer = &checkpointer{scope: s, file: p.file, ledgers: p.ledgers, queue: p.queue, eraser: p.eraser, fail: p.fail}
	return p
}

// serve owns the partition until ctx ends or it fails.
func (p *Partition) serve(ctx context.Context, s StopTime, caughtUp func(observe.PartitionAcquired), drained func()) error {
	defer p.set.Outcomes.Release(p.ID)
	acquired, err := p.open(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("open: %w", err), p.close(ctx, false, false))
	}
	p.life.enter(serving)
	p.set.slot(p.ID).served.Store(p)
	if p.set.slot(p.ID).erasedElsewhere.Load() { // an erasure during open
		p.eraser.add(erasure{local: true, copies: true})
	}
	caughtUp(acquired)
	unsubscribe, err := p.takeSplits(ctx)
	var stop func()
	if err == nil {
		defer unsubscribe()
		stop, err = p.intake.consume(ctx)
	}
	if err != nil {
		p.life.enter(draining)
		return errors.Join(fmt.Errorf("read log: %w", err), p.close(ctx, true, false)) // the checkpoint saves a second replay
	}
	stop = sync.OnceFunc(stop)
	defer context.AfterFunc(ctx, stop)() // at once: reading would fill the queue without end
	work, cancel := p.commitTime(ctx, s)
	defer cancel()
	watch, unwatch := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { p.watchIdle(watch) })
	if p.born && p.set.snapshots.enabled() { // the parent's next snapshots are after the split
		watching.Go(func() { p.set.snapshots.take(watch, p.checkpointer, 1) })
	}
	watching.Go(func() { p.fill(watch) })
	watching.Go(func() { p.eraser.run(watch) })
	err = p.commitLoop(ctx, work)
	unwatch()
	p.life.enter(draining)
	p.queue.close()
	stop()
	if err == nil {
		err = p.committer.drain(work)
	}
	if err != nil && work.Err() != nil {
		err = ErrDrain
	}
	others := errors.Is(context.Cause(ctx), ErrReassigned)
	if others {
		drained()
	}
	watching.Wait() // they use the file; a read or scrub of it may take seconds
	whole := err == nil && !p.committer.stopped.Load()
	return errors.Join(err, p.close(work, whole, whole && !others))
}

// open takes the partition over and brings its components to the marker.
func (p *Partition) open(ctx context.Context) (acquired observe.PartitionAcquired, err error) {
	began := time.Now()
	r := &recovery{scope: p.scope, file: p.file, ledgers: p.ledgers, checkpointer: p.checkpointer}
	if err := r.run(ctx); err != nil {
		return acquired, err
	}
	at := p.ledgers.position()
	p.born = r.found.Seq == 0 && r.found.Split.Child == p.ID
	p.queue.begin(at)
	p.committer.begin(r.commits, r.marker)
	p.checkpointer.begin(r.commits.Epoch())
	if err := p.eraser.find(ctx); err != nil {
		return acquired, err
	}
	failpoint.Pass("replayed")
	n, _ := p.ledgers.cached()
	return observe.PartitionAcquired{
		Partition: p.ID, Epoch: r.commits.Epoch(), Cursor: r.marker.seq, Snapshot: measure.Seq(r.snapshot), Replayed: r.replayed,
		Sessions: n, Took: time.Since(began),
	}, nil
}

// commitLoop commits decided events and writes checkpoints, until ctx ends or the
// partition fails. A running commit may outlast ctx, until work ends.
func (p *Partition) commitLoop(ctx, work context.Context) error {
	tick := time.NewTicker(p.set.config.MarkerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-p.failed:
			return err
		case <-p.queue.filled:
			p.intake.linger(ctx, p.committer.markedAt)
		case <-tick.C:
		}
		if err := p.ledgers.dropOthers(p.committer.split, p.set.config.CheckpointEvents); err != nil {
			return err
		}
		if err := p.checkpointer.collectDue(p.committer.lastSeq()); err != nil {
			return err
		}
		if failpoint.CheckpointEarly() {
			p.checkpointer.save(work, p.committer.committed)
		}
		if err := p.committer.commitQueue(work, p.checkpointer.wanted()); err != nil {
			return err
		}
		p.checkpointer.save(work, p.committer.committed)
	}
}

// close closes the file. If whole, it first writes a checkpoint. If last, no worker takes over, and it
// uploads a snapshot.
func (p *Partition) close(ctx context.Context, whole, last bool) (err error) {
	p.life.enter(closed)
	p.checkpointer.wait()
	if _, damaged := p.ledgers.cached(); damaged != nil {
		return p.file.discard(damaged)
	}
	if whole {
		err = p.checkpointer.finish(ctx, p.committer.committed, p.committer.lastSeq())
	}
	if err == nil && last && p.set.snapshots.enabled() {
		p.set.snapshots.take(ctx, p.checkpointer, 1)
	}
	return errors.Join(err, p.file.close())
}

// fail ends serve with the first error, and closes the queue.
func (p *Partition) fail(err error) {
	select {
	case p.failed <- err:
	default:
	}
	p.queue.close()
}

// scope identifies the partition that a component works for.
type scope struct {
	ID  int
	set *Set
}

// retryPause is the pause before a step is retried after a full store or a disk error.
const retryPause = time.Second

// retry calls op until it succeeds, its error is permanent, or ctx ends.
func (s scope) retry(ctx context.Context, step string, op func() error) error {
	return retry.Every(retryPause).Do(ctx, s.retrying(step), op)
}

// retrying returns a func that reports the error of a step that is retried.
func (s scope) retrying(step string) func(error) {
	return func(err error) { s.set.config.Listener.Retry(s.ID, step, err) }
}

// received records the time that an event waited in the log, and returns the trace for its outcomes.
func (s scope) received(e decide.Event, stored time.Time) events.Trace {
	t := s.set.config.Tracer
	if t == nil {
		return e.Trace
	}
	return t.Received(observe.Step{Trace: e.Trace, Name: observe.StepQueue, Address: e.Address, Seq: e.Seq, Kind: e.Kind, Began: stored, Ended: time.Now()})
}

// did records a step that ends now.
func (s scope) did(step observe.Step) {
	if t := s.set.config.Tracer; t != nil && step.Trace != "" {
		step.Ended = time.Now()
		t.Did(step)
	}
}

// publish stores an event of a session in the log. If another worker publishes it with the same message id,
// it is stored once.
func (s scope) publish(ctx context.Context, step string, k events.Kind, a events.Address, body any, header nats.Header) error {
	subject, err := events.Input(k, a)
	if err != nil {
		return err
	}
	data, err := codec.Marshal(body)
	if err != nil {
		return err
	}
	taken, err := stream.PublishOnce(ctx, s.set.js, &nats.Msg{Subject: subject, Data: data, Header: header})
	if taken != nil {
		s.retrying(step)(taken)
	}
	return err
}

// caller returns this worker's name in the audit log.
func (s scope) caller() string { return "worker, " + s.set.config.Owner }

// foreign reports messages of OUTCOMES that no worker committed.
func (s scope) foreign(f commit.Foreign) {
	observe.Call(s.set.config.Listener.Foreign, observe.Foreign{Partition: s.ID, Messages: f.Messages, First: f.First, Last: f.Last})
}

// marker describes a position in a commit.
func (s scope) marker(at position) commit.Marker {
	return commit.Marker{
		Cursor: uint64(at.seq), Chain: at.chain, LastID: at.id, LastTime: at.time,
		Config: cmp.Or(at.config, s.set.Compaction().Hash()), LogCreated: s.set.config.Streams.Log.Created.UnixNano(), Split: at.split,
	}
}

// portion returns the share of one partition in a number of sequences of the log.
func (s scope) portion(sequences uint64) int {
	return max(1, int(sequences)/s.set.Count())
}

// sources returns the partitions whose subjects may hold events of this partition after a sequence.
func (s scope) sources(after uint64) []int {
	return s.set.Table().Sources(s.ID, after)
}

// phase is the state of a partition; doc.go draws the transitions.
type phase int32

const (
	opening phase = iota
	serving
	draining
	closed
)

func (p phase) String() string { return [...]string{"opening", "serving", "draining", "closed"}[p] }

// following lists the phases that may follow each phase.
var following = [...][]phase{opening: {serving, closed}, serving: {draining}, draining: {closed}, closed: nil}

// lifecycle holds the phase. One goroutine changes it; any goroutine may read it.
type lifecycle struct{ now atomic.Int32 }

func (l *lifecycle) phase() phase { return phase(l.now.Load()) }

// enter changes the phase. A transition that doc.go does not draw is a bug, and panics.
func (l *lifecycle) enter(to phase) {
	if from := phase(l.now.Swap(int32(to))); !slices.Contains(following[from], to) {
		panic(fmt.Sprintf("partition: %s after %s", to, from))
	}
}
