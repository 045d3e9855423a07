package partition

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/limit"
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
	mu      sync.Mutex // held from the decision on an event until it is queued, and by a split

	behind   atomic.Bool   // the log holds more than a backlog of unread events
	logEmpty chan struct{} // one slot: the log had nothing more, for the moment
}

// consume begins to read behind the marker, until stop is called or ctx ends.
func (i *intake) consume(ctx context.Context) (stop func(), err error) {
	at := uint64(i.ledgers.position().seq)
	from := stream.LogFrom{Partitions: i.sources(at), Seq: at + 1, OnError: i.retrying("read log"), OnFetched: func(seq uint64, why error) {
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
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.ledgers.decides(e) {
		i.pass(i.ledgers.skip(e, at), e)
		return
	}
	e.Trace = i.received(e, at)
	read := time.Now()
	i.queue.awaitMemory()
	op := i.computing(ctx, i.ledgers.bytes(e)+limit.Weight(e.Data)-len(e.Data))
	began := time.Now()
	g, text, pressure, err := i.ledgers.decide(e, at)
	i.set.config.Limiter.Spend(e.Address.Tenant, time.Since(began))
	op.End()
	if pressure > 0 {
		i.queue.pause(pressure > 1)
		retry.Wake(i.queue.filled)
	}
	if err != nil {
		i.fail(err)
		return
	}
	i.did(observe.Step{Trace: e.Trace, Name: observe.StepDecide, Address: e.Address, Seq: e.Seq, Kind: e.Kind, Began: read})
	failpoint.Pass("decided")
	if text && !i.behind.Load() { // a backlog runs through the cache before its sessions come back to it
		i.set.Payloads.Put(e)
	}
	if err := i.retry(ctx, "pass on to branches", func() error { return relate(ctx, family{i.scope}, e, g.forked) }); err != nil {
		i.queue.close() // nothing behind the event may be committed: the next owner decides it again
		return
	}
	i.record(ctx, e, m.Headers().Get(events.HeaderCaller))
	i.pass(g, e)
	observe.Call(i.set.config.Listener.Applied, observe.Applied{Partition: i.ID, Seq: e.Seq, Kind: e.Kind, Outcomes: len(g.outcomes), Pending: e.Pending, Repeated: g.repeated})
}

// pass queues what is to be emitted about an event, and notes the end of the log.
func (i *intake) pass(g group, e decide.Event) {
	i.queue.push(g, e.Address)
	if e.Pending == 0 {
		retry.Wake(i.logEmpty)
	}
}

// auditedKinds are the kinds of events in the audit log: they change a session at once.
var auditedKinds = []events.Kind{events.KindCompact, events.KindRewind, events.KindForget}

// record puts an event of these kinds into the audit log, before its outcome is committed: an owner that
// takes over after a crash does it again, and one entry is stored. Where it cannot be stored the event goes on.
func (i *intake) record(ctx context.Context, e decide.Event, caller string) {
	if i.set.config.Audit == nil || !slices.Contains(auditedKinds, e.Kind) || e.Validate() != nil {
		return
	}
	who, from, known := strings.Cut(caller, ", ")
	if !known {
		who, from = "nats", ""
	}
	entry := events.AuditEntry{Action: string(e.Kind), Caller: who, From: from, Tenant: e.Address.Tenant, Session: e.Address.Session, Seq: uint64(e.Seq)}
	if err := i.set.config.Audit.Record(ctx, entry, fmt.Sprintf("audit-%d-%d", i.set.config.Streams.Log.Created.UnixNano(), e.Seq)); err != nil {
		i.retrying("record")(err)
	}
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

// A session that branched off another one belongs to it. The log of a session names its branches:
// the partition that decides the turn that begins a branch writes a session.branch into the log of the session
// that it branched off, which may be of another partition. The one that decides the end of a session, or
// that it is forgotten, writes the same for each branch. All of it is stored before the event is
// committed, so that an owner which takes over after a crash stores what is missing. See docs/adr/0046.

// relatives is where the branches of a session are found, and events about them stored. An event
// with an id that was stored before is the same one.
type relatives interface {
	branches(ctx context.Context, a events.Address, before compaction.Seq) ([]string, error)
	publish(ctx context.Context, k events.Kind, a events.Address, id string, body any) error
}

// relate stores what follows from an event for other sessions of its family.
func relate(ctx context.Context, f relatives, e decide.Event, forked *compaction.Forked) error {
	if forked != nil {
		parent := events.Address{Tenant: e.Address.Tenant, Session: forked.Session}
		id := fmt.Sprintf("branch-%d-%x", e.Seq, dialect.KeyOf(e.Address.String()))
		return f.publish(ctx, events.KindBranch, parent, id, &events.Branch{Header: events.Header{V: events.Version, ID: id}, Branch: e.Address.Session})
	}
	if !endsFamily(e) {
		return nil
	}
	branches, err := f.branches(ctx, e.Address, e.Seq)
	if err != nil {
		return err
	}
	for _, session := range branches {
		if e.Kind == events.KindEnd && !events.IsBranch(e.Address.Session, session) {
			continue // a fork that goes on alone
		}
		id := familyID(e, session)
		if err := f.publish(ctx, e.Kind, events.Address{Tenant: e.Address.Tenant, Session: session}, id, &events.Header{V: events.Version, ID: id}); err != nil {
			return err
		}
	}
	return nil
}

// endsFamily reports whether an event ends the branches of its session too.
func endsFamily(e decide.Event) bool {
	if e.Validate() != nil {
		return false
	}
	var err error
	switch e.Kind {
	case events.KindEnd:
		_, err = events.DecodeEnd(e.Data)
	case events.KindForget:
		_, err = events.DecodeForget(e.Data)
	default:
		return false
	}
	return err == nil
}

const familyPrefix = "family-"

// familyID is the id of an event that follows from another one for a branch. It names the first of
// them, so that sessions which branched off each other do not end each other for ever.
func familyID(e decide.Event, session string) string {
	first := fmt.Sprint(e.Seq)
	if rest, ok := strings.CutPrefix(e.ID, familyPrefix); ok {
		first, _, _ = strings.Cut(rest, "-")
	}
	return fmt.Sprintf("%s%s-%x", familyPrefix, first, dialect.KeyOf(e.Address.Tenant+"."+session))
}

// family is that of the sessions of a partition, in the log.
type family struct{ scope }

func (f family) branches(ctx context.Context, a events.Address, before compaction.Seq) (out []string, err error) {
	subjects := events.LoggedIn(f.set.Table().Path(a), events.KindBranch, a)
	err = stream.ReadSubjects(ctx, f.set.config.Read, topology.LogStream, subjects, 1, func(m stream.LogMessage) error {
		if m.Seq >= uint64(before) {
			return nil // of one subject they are in order, of all they are not
		}
		if b, err := events.DecodeBranch(m.Data); err == nil && !slices.Contains(out, b.Branch) { // else it was overwritten
			out = append(out, b.Branch)
		}
		return nil
	})
	return out, err
}

func (f family) publish(ctx context.Context, k events.Kind, a events.Address, id string, body any) error {
	return f.scope.publish(ctx, "pass on to branches", k, a, body, nats.Header{nats.MsgIdHdr: {id}, events.HeaderCaller: {f.caller()}})
}
