package partition

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
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
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/failpoint"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// While a partition is more than backlog events behind, it commits at most every catchUpPause:
// many small commits would delay the reading.
const (
	backlog      = 1000
	catchUpPause = 100 * time.Millisecond
)

// intake reads the log, decides each event, and queues its outcomes. The reader of
// the log calls receive, in order; receive waits while memory is short or the queue full.
type intake struct {
	scope
	ledgers *ledgers
	queue   *queue
	fail    func(error)
	mu      sync.Mutex // held from the decision on an event until it is queued, and by a split

	behind   atomic.Bool   // the log holds more than a backlog of unread events
	logEmpty chan struct{} // one slot: the last event of the log was read
}

// consume reads the log after the marker, until stop is called or ctx ends.
func (i *intake) consume(ctx context.Context) (stop func(), err error) {
	at := uint64(i.ledgers.position().seq)
	from := stream.LogFrom{Partitions: i.sources(at), Seq: at + 1, OnError: i.retrying("read log"), OnReplace: i.check, OnFetched: func(seq uint64, why error) {
		observe.Call(i.set.config.Listener.Fetched, observe.Fetched{Partition: i.ID, Seq: measure.Seq(seq), Err: why})
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
	if text && !i.behind.Load() { // the texts of a backlog would leave the cache before their next use
		i.set.Payloads.Put(e)
	}
	if err := i.retry(ctx, "pass on to branches", func() error { return relate(ctx, family{i.scope}, e, g.forked) }); err != nil {
		i.queue.close() // no later event may be committed: the next owner decides this one again
		return
	}
	i.record(ctx, e, m.Headers().Get(events.HeaderCaller))
	i.pass(g, e)
	observe.Call(i.set.config.Listener.Applied, observe.Applied{Partition: i.ID, Seq: e.Seq, Kind: e.Kind, Outcomes: len(g.outcomes), Pending: e.Pending, Repeated: g.repeated})
}

// pass queues the outcomes of an event, and signals the end of the log.
func (i *intake) pass(g group, e decide.Event) {
	i.queue.push(g, e.Address)
	if e.Pending == 0 {
		retry.Wake(i.logEmpty)
	}
}

// auditedKinds are the kinds of events in the audit log: they change a session at once.
var auditedKinds = []events.Kind{events.KindCompact, events.KindRewind, events.KindForget}

// record puts an audited event into the audit log before its outcome is committed. An owner that takes
// over after a crash records it again; within two minutes the entry is stored once. An error does not stop
// the event.
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

// linger delays the next commit while there is a backlog, so that it holds more outcomes.
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

// A branch of a session belongs to it. The log of a session names its branches: the partition that
// decides the first turn of a branch writes a session.branch into the log of the parent session,
// which may belong to another partition. The partition that decides a session.end or session.forget
// writes the same event for each branch that the log names before it. The parent may end between the
// turn of a branch and its session.branch: then the partition of the branch writes that event. These
// events are stored before the commit of the event that caused them, so that an owner which takes over
// after a crash stores the missing ones. See docs/adr/0046.

// relatives reads and stores events about the branches of a session.
type relatives interface {
	// branches lists the branches that the log names before an event.
	branches(ctx context.Context, a events.Address, before measure.Seq) ([]string, error)
	// endings lists the endings of a session after an event, in order.
	endings(ctx context.Context, a events.Address, after measure.Seq) ([]ending, error)
	publish(ctx context.Context, k events.Kind, a events.Address, id string, body any) error
}

// relate stores the events that an event causes for other sessions of its family.
func relate(ctx context.Context, f relatives, e decide.Event, forked *compaction.Forked) error {
	if forked != nil {
		return name(ctx, f, e, events.Address{Tenant: e.Address.Tenant, Session: forked.Session})
	}
	x, ok := endingOf(e.Kind, e.Seq, e.Data)
	if valid := e.Validate() == nil; !ok || !valid {
		return nil
	}
	branches, err := f.branches(ctx, e.Address, e.Seq)
	if err != nil {
		return err
	}
	for _, session := range branches {
		if err := passOn(ctx, f, x, e.Address, session); err != nil {
			return err
		}
	}
	return nil
}

// name stores the session.branch of a turn's session in the log of its parent, and the endings of the parent
// since the turn.
func name(ctx context.Context, f relatives, e decide.Event, parent events.Address) error {
	id := fmt.Sprintf("branch-%d-%x", e.Seq, dialect.KeyOf(e.Address.String()))
	named := events.Branch{Header: events.Header{V: events.Version, ID: id}, Branch: e.Address.Session}
	if err := f.publish(ctx, events.KindBranch, parent, id, &named); err != nil {
		return err
	}
	since, err := f.endings(ctx, parent, e.Seq) // any later ending finds the session.branch
	if err != nil {
		return err
	}
	for _, x := range since {
		if err := passOn(ctx, f, x, parent, e.Address.Session); err != nil {
			return err
		}
	}
	return nil
}

// passOn stores the ending of a session for a branch, unless the branch ended since: a second event would end
// a session that its agent began again.
func passOn(ctx context.Context, f relatives, x ending, parent events.Address, branch string) error {
	if x.kind == events.KindEnd && !events.IsBranch(parent.Session, branch) {
		return nil // a fork, which outlives its parent
	}
	a := events.Address{Tenant: parent.Tenant, Session: branch}
	first := x.first()
	id := fmt.Sprintf("%s%d-%x", familyPrefix, first, dialect.KeyOf(a.String()))
	found, err := f.endings(ctx, a, first-1)
	if err != nil || slices.ContainsFunc(found, func(y ending) bool {
		return (y.kind == x.kind || y.kind == events.KindForget) && (y.seq == first || y.id == id || y.seq > x.seq)
	}) {
		return err
	}
	return f.publish(ctx, x.kind, a, id, &events.Header{V: events.Version, ID: id})
}

// ending is a valid session.end or session.forget.
type ending struct {
	kind events.Kind
	seq  measure.Seq
	id   string
}

// endingOf reads an ending; ok is false for any other event.
func endingOf(k events.Kind, seq measure.Seq, data []byte) (x ending, ok bool) {
	var in events.Publishable
	var err error
	switch k {
	case events.KindEnd:
		in, err = events.Decode[events.End](data)
	case events.KindForget:
		in, err = events.Decode[events.Erasure](data)
	default:
		return x, false
	}
	if err != nil {
		return x, false
	}
	return ending{k, seq, in.EventID()}, true
}

// familyPrefix begins the id of an ending that another session caused. The sequence of the first ending of the
// cascade follows, so that sessions which branched off each other do not end each other forever.
const familyPrefix = "family-"

// first returns the sequence of the first ending of the cascade.
func (e ending) first() measure.Seq {
	if rest, ok := strings.CutPrefix(e.id, familyPrefix); ok {
		digits, _, _ := strings.Cut(rest, "-")
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil && n > 0 && n < uint64(e.seq) {
			return measure.Seq(n)
		}
	}
	return e.seq
}

// family implements relatives with the log.
type family struct{ scope }

func (f family) branches(ctx context.Context, a events.Address, before measure.Seq) (out []string, err error) {
	err = f.read(ctx, events.KindBranch, a, 1, func(m stream.LogMessage) error {
		if m.Seq >= uint64(before) {
			return nil // the messages of several subjects are not in order
		}
		if b, err := events.Decode[events.Branch](m.Data); err == nil && !slices.Contains(out, b.Branch) { // err: overwritten
			out = append(out, b.Branch)
		}
		return nil
	})
	return out, err
}

func (f family) endings(ctx context.Context, a events.Address, after measure.Seq) (out []ending, err error) {
	for _, k := range []events.Kind{events.KindEnd, events.KindForget} {
		if err := f.read(ctx, k, a, uint64(after)+1, func(m stream.LogMessage) error {
			if x, ok := endingOf(k, measure.Seq(m.Seq), m.Data); ok {
				out = append(out, x)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(x, y ending) int { return cmp.Compare(x.seq, y.seq) })
	return out, nil
}

// read calls fn with the events of one kind of a session from a sequence on.
func (f family) read(ctx context.Context, k events.Kind, a events.Address, from uint64, fn func(stream.LogMessage) error) error {
	return stream.ReadSubjects(ctx, f.set.config.Read, topology.LogStream, events.LoggedIn(f.set.Table().Path(a), k, a), from, fn)
}

func (f family) publish(ctx context.Context, k events.Kind, a events.Address, id string, body any) error {
	return f.scope.publish(ctx, "pass on to branches", k, a, body, nats.Header{nats.MsgIdHdr: {id}, events.HeaderCaller: {f.caller()}})
}
