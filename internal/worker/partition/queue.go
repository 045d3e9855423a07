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

// group is what is emitted about one event. One without outcomes is the end of a config epoch, or a split.
type group struct {
	outcomes []emitted
	end      position
	repeated measure.Repeated
	forked   *compaction.Forked // where the event's session branched off, with it; nil where it did not
}

// emitted is one outcome on its way.
type emitted struct {
	address events.Address
	outcome compaction.Outcome
	trace   events.Trace   // of the event that it follows from
	seq     compaction.Seq // of that event
	omitted string         // why its messages are left out, "" if they are not
	invalid error          // what is wrong with them, nil if nothing is
}

// alone reports whether the group is a marker alone: events behind it are decided under another config, or without
// the sessions of a child.
func (g group) alone() bool { return len(g.outcomes) == 0 }

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

// step is one of the outcome, which began earlier.
func (t *emitted) step(name string, began time.Time) observe.Step {
	return observe.Step{Trace: t.trace, Name: name, Address: t.address, Seq: t.seq, Kind: t.outcome.Kind, Began: began, Err: t.invalid}
}

// queue holds what is decided and not yet committed. Intake fills it, the committer empties
// it, requests wait on it.
type queue struct {
	maxGroups int
	maxBytes  int
	filled    chan struct{} // one slot: there is something to commit, or to checkpoint

	mu      sync.Mutex // guards the fields below
	space   *sync.Cond // signalled when groups shrinks, intake goes on, or the queue closes
	groups  []group
	bytes   int      // of memory that groups takes, about
	end     position // of what is decided
	paused  bool     // nothing more is decided before ledgers have left memory
	closed  bool
	waiters map[events.Address]*waiters
}

func newQueue(maxGroups, maxBytes int) *queue {
	q := &queue{maxGroups: maxGroups, maxBytes: maxBytes, filled: make(chan struct{}, 1), waiters: map[events.Address]*waiters{}}
	q.space = sync.NewCond(&q.mu)
	return q
}

// begin sets the position behind which events are decided.
func (q *queue) begin(at position) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end = at
}

// push queues what was decided about one event of a session. It waits while too much is
// queued. After close it does nothing: the event will be read and decided again.
func (q *queue) push(g group, a events.Address) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for (len(q.groups) >= q.maxGroups || q.bytes > q.maxBytes) && !q.closed {
		q.space.Wait()
	}
	if q.closed {
		return
	}
	if q.end.config != g.end.config && q.end.config != "" { // a marker of its own ends the config epoch
		q.groups = append(q.groups, group{end: q.end})
		retry.Wake(q.filled)
	}
	q.end = g.end
	q.wakeAwaiting(a)
	q.add(g)
}

// pushAlone queues a marker alone: the position of the last event, with a split behind it.
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

// confirm queues an outcome that follows from no event. After close it does nothing: the
// next owner does again what the outcome confirms.
func (q *queue) confirm(t emitted) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.add(group{outcomes: []emitted{t}, end: q.end})
	}
}

// add queues a group that has outcomes. The caller holds mu.
func (q *queue) add(g group) {
	if len(g.outcomes) > 0 {
		q.groups = append(q.groups, g)
		q.bytes += g.weight()
		retry.Wake(q.filled)
	}
}

// head returns what is queued up to the next marker alone, and the position behind it. A commit of its own has no
// session's message, so that no erasure takes its marker.
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
	clear(q.groups[:n]) // or their views would live as long as the slice
	q.groups = q.groups[n:]
	q.space.Broadcast()
}

// pause makes intake wait, or lets it go on.
func (q *queue) pause(yes bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = yes
	q.space.Broadcast()
}

// awaitMemory returns when the next event may be decided.
func (q *queue) awaitMemory() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.paused && !q.closed {
		q.space.Wait()
	}
}

// close lets nothing more into the queue.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.space.Broadcast()
}

// HasCommitted reports whether every outcome for a that an event up to seq led to is
// committed.
func (q *queue) HasCommitted(a events.Address, seq compaction.Seq) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.end.seq < seq {
		return false // decided, and not queued yet
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

// waiters is what requests about one session wait on.
type waiters struct {
	moved chan struct{} // closed with the next event of the session
	n     int           // requests
}

// Await registers a request that waits for events of a session; drop ends that. moved is
// closed with the next event.
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

// wakeAwaiting lets the requests go on that wait for a session. The caller holds mu.
func (q *queue) wakeAwaiting(a events.Address) {
	if on := q.waiters[a]; on != nil {
		close(on.moved)
		delete(q.waiters, a)
	}
}
