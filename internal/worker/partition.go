package worker

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/outcomelog"
)

// position is a place between two events of a partition.
type position struct {
	seq   compaction.Seq // of the event before it
	chain uint64         // hash over all events up to it
	id    string         // of the event before it
	time  int64          // of the event before it, in Unix milliseconds
}

// group is what is told about one event.
type group struct {
	outcomes []emitted
	end      position
}

// weight is about how many bytes of memory the group takes until it is committed.
func (g *group) weight() (n int) {
	for _, t := range g.outcomes {
		n += 1 << 10
		if v := t.outcome.View; v != nil {
			n += v.Weight()
		}
	}
	return n
}

// emitted is one outcome on its way.
type emitted struct {
	address events.Address
	outcome compaction.Outcome
	omitted string // why its messages are left out, "" if they are not
}

// partition serves one partition of the log.
type partition struct {
	w         *Worker
	id        int
	allowance int // bytes of what is decided and not committed, and of one commit
	caughtUp  func(observe.PartitionAcquired)
	drained   func()     // nothing more is committed; called when others are to go on
	failed    chan error // the first reason to stop reading

	state   sync.Mutex // guards the fields below; never held while waiting for room
	decider *decide.Decider
	decided position // of what the ledgers hold

	// Owned by the committer.
	committer   *broker.Committer
	committed   compaction.Seq
	markedAt    time.Time
	store       *kv.Store    // nil without checkpoints
	outcomesSeq uint64       // sequence in OUTCOMES that the store stands at
	snapshot    uint64       // cursor of the snapshot that the store came from; 0 without one
	unsnapped   atomic.Int64 // events since the newest snapshot, as far as this owner knows
	pending     *checkpoint  // collected, waits for its commit
	saved       time.Time    // when the last one was collected
	writing     atomic.Bool  // one is being written
	unwritten   bool         // one was given up: its rows are lost, so none may follow
	carried     *rendered    // did not fit the last commit; nil for none
	counted     bool         // what the tenants have had stored lately is read
	truncated   bool         // the log was found to have lost its end
	last        bool         // nobody is there to go on: the last one becomes a snapshot

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

func newPartition(w *Worker, id int, caughtUp func(observe.PartitionAcquired), drained func()) *partition {
	p := &partition{
		w: w, id: id, allowance: partitionShare(w.config.Memory, w.config.Streams.Partitions), caughtUp: caughtUp, drained: drained,
		failed:    make(chan error, 1),
		decider:   decide.New(w.config.Compaction),
		waiters:   map[events.Address]*waiters{},
		wake:      make(chan struct{}, 1),
		logEmpty:  make(chan struct{}, 1),
		forgotten: make(chan struct{}, 1), checkpointed: make(chan struct{}, 1),
	}
	p.space = sync.NewCond(&p.mu)
	return p
}

// run owns the partition until ctx ends or it is lost.
func (p *partition) run(ctx context.Context, s stopTime) error {
	err := p.serve(ctx, s)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // stopped before it began
	}
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.id, err)
	}
	return nil
}

func (p *partition) serve(ctx context.Context, s stopTime) error {
	defer p.w.quotas.Release(p.id)
	if err := p.open(ctx); err != nil {
		return errors.Join(fmt.Errorf("open: %w", err), p.closeStore(ctx, false))
	}
	from := broker.LogFrom{Partition: p.id, Seq: uint64(p.end.seq) + 1, OnError: p.retrying("read log"), OnFetched: func(seq uint64, why error) {
		observe.Call(p.w.config.Listener.Fetched, observe.Fetched{Partition: p.id, Seq: compaction.Seq(seq), Err: why})
	}}
	stop, err := broker.ConsumeLog(ctx, p.w.js, from, p.receive)
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
	others := errors.Is(context.Cause(ctx), errHandOver)
	if others {
		p.drained()
	}
	watching.Wait() // for the file: to look through it, or overwrite it, may take seconds
	whole := err == nil && !p.handOverDue.Load()
	p.last = whole && ctx.Err() != nil && !others
	return errors.Join(err, p.closeStore(work, whole))
}

// errHandOver is why ctx ends when another worker is to go on. What is not committed
// then within handOverTime is left to it: it decides that again, while agents wait
// for nothing else.
var errHandOver = errors.New("partition reassigned")

const handOverTime = 20 * time.Millisecond

// commitTime returns the context of the commits, which outlives ctx: a commit that is
// given up half-way leaves behind that nobody knows whether it is stored. It ends with the
// time of a stop, and DrainTimeout after ctx where there is a hand-over only.
func (p *partition) commitTime(ctx context.Context, s stopTime) (context.Context, context.CancelFunc) {
	work, cancel := outlive(ctx, p.w.config.DrainTimeout)
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errHandOver) {
			late := time.AfterFunc(handOverTime, func() { p.handOverDue.Store(true) })
			context.AfterFunc(work, func() { late.Stop() })
		}
	})
	ended := context.AfterFunc(s.commits, cancel)
	return work, func() { ended(); cancel() }
}

// open takes the partition over and brings its ledgers to the marker.
func (p *partition) open(ctx context.Context) error {
	began := time.Now()
	if err := p.openStore(); err != nil {
		return err
	}
	claim := broker.Claim{
		Partition: p.id, Owner: p.w.config.Owner, Config: p.w.config.Compaction.Hash(),
		LogCreated: p.w.config.Streams.Log.Created.UnixNano(),
		OnRetry:    func(err error, _ time.Duration) { p.retrying("commit")(err) },
	}
	var found broker.Stored
	var err error
	if p.committer, found, err = broker.TakeOver(ctx, p.w.config.Commit, claim); err != nil {
		return err
	}
	failpoint.Pass("taken-over")
	log, err := p.awaitLog(ctx, found.Cursor) // after the take-over: nobody moves the marker any more
	if err != nil {
		return err
	}
	if found.Seq > 0 && found.LogCreated != log.Created.UnixNano() {
		return errOtherLog
	}
	marker := position{seq: compaction.Seq(found.Cursor), chain: found.Chain, id: found.LastID, time: found.LastTime}
	end, lost, err := p.findTruncation(ctx, log, found)
	if err == nil && lost {
		marker, err = p.rollBackMarker(ctx, end, found.Cursor)
	}
	if err != nil {
		return err
	}
	if failpoint.IgnoreMarker() {
		marker = position{}
	}
	p.committed, p.markedAt, p.saved = marker.seq, time.Now(), time.Now()
	if p.decided, err = p.resume(ctx, log, marker); err != nil {
		return err
	}
	from := p.decided.seq
	replayed, err := p.replay(ctx, log, marker)
	if errors.Is(err, errOtherChain) && from > 0 {
		replayed, err = p.rebuild(ctx, log, marker, err)
	}
	if err != nil {
		return err
	}
	if err := p.pendingErasures(ctx); err != nil {
		return err
	}
	failpoint.Pass("replayed")
	p.w.served[p.id].Store(p)
	p.caughtUp(observe.PartitionAcquired{
		Partition: p.id, Epoch: p.committer.Epoch(), Cursor: marker.seq, Snapshot: compaction.Seq(p.snapshot), Replayed: replayed,
		Sessions: len(p.decider.Cache), Took: time.Since(began),
	})
	return nil
}

// rebuild sets a file aside that led to another hash than the marker's, and replays
// from the beginning of the log.
func (p *partition) rebuild(ctx context.Context, log broker.StreamState, marker position, reason error) (replayed int, err error) {
	moved, err := p.store.Discard()
	if err != nil {
		return 0, err
	}
	p.quarantine(reason, moved)
	p.decider = decide.New(p.w.config.Compaction)
	p.decided, p.outcomesSeq, p.snapshot = position{}, 0, 0
	if err := p.openStore(); err != nil {
		return 0, err
	}
	return p.replay(ctx, log, marker)
}

// replay applies the events up to the marker as they were told, each under the
// config it was decided under. The log must have the marker's hash, if all of what
// lies behind the ledgers is still there.
func (p *partition) replay(ctx context.Context, log broker.StreamState, marker position) (replayed int, err error) {
	if marker.seq <= p.decided.seq {
		p.end = p.decided
		return 0, nil
	}
	whole := log.First <= uint64(p.decided.seq)+1 && (p.decided.seq == 0 || p.decided.chain != 0)
	recorded, err := p.load(ctx)
	if err != nil {
		return 0, err
	}
	present := p.w.config.Compaction
	configs := outcomelog.NewConfigResolver(p.w.js, present.Parse)
	defer func() { p.decider.Config = present }()
	err = broker.ReadStream(ctx, p.w.js, broker.LogStream, events.LogFilter(p.id), uint64(p.decided.seq)+1, uint64(marker.seq), func(m jetstream.Msg, _ uint64) error {
		e, at, err := decide.ReadEvent(m)
		if err != nil {
			return err
		}
		if p.decider.Config, err = configs.GetOr(ctx, recorded.ConfigAt(e.Seq), present, p.retrying("replay")); err != nil {
			return err
		}
		if err := p.decider.ApplyRecorded(e, recorded.Outcomes[e.Seq]); err != nil {
			p.retrying("replay")(err)
		}
		delete(recorded.Outcomes, e.Seq)
		if p.decider.LoadErr != nil {
			return p.decider.LoadErr
		}
		p.decider.Events++
		p.decided = positionAfter(p.decided, e, at)
		replayed++
		p.unsnapped.Add(1)
		if c := recorded.Chains[e.Seq]; whole && c != 0 && c != p.decided.chain {
			return errOtherChain
		}
		return p.checkpointReplay(ctx, whole)
	})
	if err != nil {
		return replayed, err
	}
	if whole && marker.chain != 0 && p.decided.chain != marker.chain {
		return replayed, p.otherChain(ctx, marker)
	}
	p.decided.seq, p.decided.chain = marker.seq, cmp.Or(marker.chain, p.decided.chain)
	p.end = p.decided
	return replayed, nil
}

var errOtherChain = errors.New("the log is not the one the outcomes were decided on: its hash differs at the marker; restore SESSIONS and OUTCOMES from one backup")

var errOtherLog = errors.New("the outcomes belong to another log: SESSIONS was created again; purge OUTCOMES, or use another --data")

// load reads the outcomes told about events up to the marker.
func (p *partition) load(ctx context.Context) (*outcomelog.Index, error) {
	r := &outcomelog.Index{}
	if p.truncated {
		r.Chains = map[compaction.Seq]uint64{}
	}
	err := broker.ReadStream(ctx, p.w.js, broker.OutcomesStream, events.OutcomeFilter(p.id), p.outcomesSeq+1, p.committer.Fence(), func(m jetstream.Msg, _ uint64) error {
		if at, err := events.ParseOutcome(m.Subject()); err == nil && at.Kind != events.KindErased {
			if err := r.Add(at.Kind, m.Data()); err != nil {
				return fmt.Errorf("read %s: %w", m.Subject(), err)
			}
		}
		marker, ok, err := broker.ParseMarker(m.Headers())
		if ok {
			r.ApplyMarker(marker)
		}
		return err
	})
	return r, err
}

// receive handles one message of the log. The reader calls it, in order.
func (p *partition) receive(m jetstream.Msg) {
	e, at, err := decide.ReadEvent(m)
	if err != nil {
		p.fail(err)
		return
	}
	p.behind.Store(e.Pending > backlog)
	p.awaitMemory()
	p.state.Lock()
	outs, text := p.decider.Process(e)
	p.decider.Events++
	p.decided = positionAfter(p.decided, e, at)
	p.unsnapped.Add(1)
	g, lost := group{end: p.decided}, p.decider.LoadErr
	crowding := p.memoryPressure()
	p.state.Unlock()
	if crowding > 0 {
		p.pauseIntake(crowding > 1)
		wakeUp(p.wake)
	}
	if lost != nil {
		p.fail(lost)
		return
	}
	failpoint.Pass("decided")
	if text && !p.behind.Load() { // a backlog runs through the cache before its sessions come back to it
		p.w.payloads.Put(e)
	}
	for _, o := range outs {
		g.outcomes = append(g.outcomes, emitted{address: e.OutcomeAddress(), outcome: o})
	}
	p.push(g, e.Address)
	if e.Pending == 0 {
		wakeUp(p.logEmpty)
	}
	observe.Call(p.w.config.Listener.Applied, observe.Applied{Partition: p.id, Seq: e.Seq, Kind: e.Kind, Outcomes: len(outs), Pending: e.Pending})
}

// push queues what was decided about one event of a session and waits while too much
// is queued.
func (p *partition) push(g group, a events.Address) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for (len(p.queue) >= p.w.config.MaxAhead || p.queued > p.allowance) && !p.stopped {
		p.space.Wait()
	}
	if p.stopped {
		return // it will be read and decided again
	}
	p.end = g.end
	p.wakeAwaiting(a)
	if len(g.outcomes) == 0 {
		return
	}
	p.queue = append(p.queue, g)
	p.queued += g.weight()
	wakeUp(p.wake)
}

// halt lets nothing more into the queue.
func (p *partition) halt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	p.space.Broadcast()
}

func (p *partition) fail(err error) {
	select {
	case p.failed <- err:
	default:
	}
	p.halt()
}

func (p *partition) retrying(step string) func(error) {
	return func(err error) {
		observe.Call(p.w.config.Listener.Retrying, observe.Retrying{Partition: p.id, Step: step, Err: err})
	}
}

// positionAfter is the border behind an event. A session.forget begins a new chain:
// events before it may be erased.
func positionAfter(before position, e decide.Event, at time.Time) position {
	if e.Kind == events.KindForget {
		before.chain = 0
	}
	return position{seq: e.Seq, chain: chain(before.chain, e), id: e.ID, time: at.UnixMilli()}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chain extends the hash of a partition by one event. It is never 0, which
// stands for a hash that is not known.
func chain(before uint64, e decide.Event) uint64 {
	var b [20]byte
	binary.BigEndian.PutUint64(b[:], before)
	binary.BigEndian.PutUint64(b[8:], uint64(e.Seq))
	binary.BigEndian.PutUint32(b[16:], crc32.Checksum(e.Data, castagnoli))
	h := fnv.New64a()
	h.Write(b[:])
	return max(1, h.Sum64())
}
