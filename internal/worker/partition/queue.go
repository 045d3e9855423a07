package partition

import (
	"slices"
	"sync"
	"time"

	"compactd/internal/broker/retry"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/worker/observe"
)

// group holds the outcomes of one event. A group without outcomes is the end of a config epoch, or a split.
type group struct {
	outcomes []emitted
	end      position
	repeated measure.Repeated
	forked   *compaction.Forked // set if the event's session branched off another one with it
}

// emitted is one outcome between its decision and its commit.
type emitted struct {
	address events.Address
	outcome compaction.Outcome
	trace   events.Trace // of the event that caused it
	seq     measure.Seq  // of that event
	omitted string       // the reason to omit its messages, or ""
	invalid error        // the reason why its messages are invalid, or nil
}

// alone reports whether the group is committed as a marker alone: later events are decided under another
// config, or without the sessions of a child.
func (g group) alone() bool { return len(g.outcomes) == 0 }

// weight estimates the bytes of memory that the group takes until it is committed.
func (g *group) weight() (n int) {
	for _, t := range g.outcomes {
		n += 1 << 10
		if v := t.outcome.View; v != nil {
			n += v.Weight()
		}
	}
	return n
}

// step describes a step of the outcome that began earlier.
func (t *emitted) step(name string, began time.Time) observe.Step {
	return observe.Step{Trace: t.trace, Name: name, Address: t.address, Seq: t.seq, Kind: t.outcome.Kind, Began: began, Err: t.invalid}
}

// queue holds decided events until they are committed. Intake fills it, the committer empties
// it, requests wait on it.
type queue struct {
	maxGroups int
	maxBytes  int
	filled    chan struct{} // one slot: a commit or a checkpoint is due

	mu      sync.Mutex // guards the fields below
	space   *sync.Cond // signalled when groups shrinks, intake continues, or the queue closes
	groups  []group
	bytes   int      // estimated memory of groups
	end     position // of the last decided event
	paused  bool     // intake waits until ledgers have left memory
	closed  bool
	waiters map[events.Address]*waiters
}

func newQueue(maxGroups, maxBytes int) *queue {
	q := &queue{maxGroups: maxGroups, maxBytes: maxBytes, filled: make(chan struct{}, 1), waiters: map[events.Address]*waiters{}}
	q.space = sync.NewCond(&q.mu)
	return q
}

// begin sets the position after which events are decided.
func (q *queue) begin(at position) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end = at
}

// push queues the outcomes of one event of a session. It waits while the queue is full. After
// close it does nothing: the next owner decides the event again.
func (q *queue) push(g group, a events.Address) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for (len(q.groups) >= q.maxGroups || q.bytes > q.maxBytes) && !q.closed {
		q.space.Wait()
	}
	if q.closed {
		return
	}
	if q.end.config != g.end.config && q.end.config != "" { // a marker alone ends the config epoch
		q.groups = append(q.groups, group{end: q.end})
		retry.Wake(q.filled)
	}
	q.end = g.end
	q.wakeAwaiting(a)
	q.add(g)
}

// pushAlone queues a marker alone: the position of the last event, with the split after it.
func (q *queue) pushAlone(end position) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.end = end
	q.groups = append(q.groups, group{end: end})
	retry.Wake(q.filled)
}

// confirm queues an outcome that no event caused. After close it does nothing: the
// next owner repeats the action that the outcome confirms.
func (q *queue) confirm(t emitted) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.add(group{outcomes: []emitted{t}, end: q.end})
	}
}

// add queues a group if it has outcomes. The caller holds mu.
func (q *queue) add(g group) {
	if len(g.outcomes) > 0 {
		q.groups = append(q.groups, g)
		q.bytes += g.weight()
		retry.Wake(q.filled)
	}
}

// head returns the groups before the next marker alone and the position after them. A marker alone has its own
// commit: without a message of a session, no erasure can remove it.
func (q *queue) head() ([]group, position) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.groups, group.alone); i >= 0 {
		n := max(i, 1)
		return q.groups[:n], q.groups[n-1].end
	}
	return q.groups, q.end
}

// remove takes the first n groups off the queue.
func (q *queue) remove(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.groups[:n] {
		q.bytes -= q.groups[i].weight()
	}
	clear(q.groups[:n]) // lets the garbage collector free their views
	q.groups = q.groups[n:]
	q.space.Broadcast()
}

// pause makes intake wait, or lets it continue.
func (q *queue) pause(yes bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = yes
	q.space.Broadcast()
}

// awaitMemory waits while intake is paused.
func (q *queue) awaitMemory() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.paused && !q.closed {
		q.space.Wait()
	}
}

// close makes push and confirm do nothing, and ends their waits.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.space.Broadcast()
}

// HasCommitted reports whether all outcomes for a of events up to seq are committed.
func (q *queue) HasCommitted(a events.Address, seq measure.Seq) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.end.seq < seq {
		return false // its event is not yet queued
	}
	for _, g := range q.groups {
		if g.end.seq > seq {
			break
		}
		if slices.ContainsFunc(g.outcomes, func(t emitted) bool { return t.address == a }) {
			return false
		}
	}
	return true
}

// waiters are the requests that wait for events of one session.
type waiters struct {
	moved chan struct{} // closed with the next event of the session
	n     int           // number of requests
}

// Await registers a request that waits for events of a session. The next event closes moved; drop
// ends the registration.
func (q *queue) Await(a events.Address) (moved <-chan struct{}, drop func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	on := q.waiters[a]
	if on == nil {
		on = &waiters{moved: make(chan struct{})}
		q.waiters[a] = on
	}
	on.n++
	return on.moved, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if on.n--; on.n == 0 && q.waiters[a] == on {
			delete(q.waiters, a)
		}
	}
}

// wakeAwaiting wakes the requests that wait for a session. The caller holds mu.
func (q *queue) wakeAwaiting(a events.Address) {
	if on := q.waiters[a]; on != nil {
		close(on.moved)
		delete(q.waiters, a)
	}
}
