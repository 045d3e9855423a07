package partition

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/observe"
)

// While a partition is more than a backlog of events behind, commits come at most
// every catchUpPause, until it has caught up: many small ones would hold up the
// reading they wait for.
const (
	backlog      = 1000
	catchUpPause = 100 * time.Millisecond
)

// intake reads the log, decides each event, and queues what is to be emitted. The reader of
// the log calls receive, in order; it waits there while memory is short or the queue full.
type intake struct {
	scope
	ledgers *ledgers
	queue   *queue
	fail    func(error)

	behind   atomic.Bool   // the log holds more than a backlog of unread events
	logEmpty chan struct{} // one slot: the log had nothing more, for the moment
}

// consume begins to read behind the marker, until stop is called or ctx ends.
func (i *intake) consume(ctx context.Context) (stop func(), err error) {
	from := stream.LogFrom{Partition: i.ID, Seq: uint64(i.ledgers.position().seq) + 1, OnError: i.retrying("read log"), OnFetched: func(seq uint64, why error) {
		observe.Call(i.set.config.Listener.Fetched, observe.Fetched{Partition: i.ID, Seq: compaction.Seq(seq), Err: why})
	}}
	return stream.ConsumeLog(ctx, i.set.js, from, func(m jetstream.Msg) { i.receive(ctx, m) })
}

// receive handles one message of the log.
func (i *intake) receive(ctx context.Context, m jetstream.Msg) {
	e, at, err := decide.ReadEvent(m)
	if err != nil {
		i.fail(err)
		return
	}
	i.behind.Store(e.Pending > backlog)
	i.queue.awaitMemory()
	g, text, pressure, err := i.ledgers.decide(e, at)
	if pressure > 0 {
		i.queue.pause(pressure > 1)
		wakeUp(i.queue.filled)
	}
	if err != nil {
		i.fail(err)
		return
	}
	failpoint.Pass("decided")
	if text && !i.behind.Load() { // a backlog runs through the cache before its sessions come back to it
		i.set.Payloads.Put(e)
	}
	if err := i.retry(ctx, "pass on to branches", func() error { return relate(ctx, family{i.scope}, e, g.forked) }); err != nil {
		i.queue.close() // nothing behind the event may be committed: the next owner decides it again
		return
	}
	i.queue.push(g, e.Address)
	if e.Pending == 0 {
		wakeUp(i.logEmpty)
	}
	observe.Call(i.set.config.Listener.Applied, observe.Applied{Partition: i.ID, Seq: e.Seq, Kind: e.Kind, Outcomes: len(g.outcomes), Pending: e.Pending, Repeated: g.repeated})
}

// linger lets outcomes gather after a commit while there is a backlog to read.
func (i *intake) linger(ctx context.Context, committed time.Time) {
	if !i.behind.Load() {
		return
	}
	select {
	case <-ctx.Done():
	case <-i.logEmpty:
	case <-time.After(time.Until(committed.Add(catchUpPause))):
	}
}
