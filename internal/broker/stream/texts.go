package stream

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/memory"
)

// Limits on reads in flight. Their number starts low and grows while the payloads are small: the
// server disconnects a client with 64 MiB pending.
const (
	maxInFlight   = 64
	firstInFlight = 8
	leastInFlight = 2
	bytesInFlight = 24 << 20
)

// Texts reads events of the log by sequence, for many callers at once. It joins their requests
// in sweeps, in the order of the log.
//
// A server reads a whole block of its file around each event, up to 8 MiB. The turns of a session
// are spread over many blocks, and the server's memory holds few of them. A sweep reads each
// block once for all callers. See docs/adr/0032.
type Texts struct {
	nc     *nats.Conn
	pause  time.Duration // see firstResend
	scarce atomic.Bool   // memory was short before the last request

	mu       sync.Mutex // guards the fields below, and those that getter lists
	callers  []*getter  // that still have events to request
	sweep    uint64     // number of the current sweep
	at, end  uint64     // sequences: last requested in this sweep, and the end of the sweep
	inFlight int        // slots in use
	big      int        // the largest recent payload
	answered time.Time  // time of the last answer to any caller
}

// NewTexts returns a Texts over a connection.
func NewTexts(nc *nats.Conn) *Texts { return &Texts{nc: nc, pause: firstResend} }

// Get reads single events by sequence and returns them in the order of seqs. With a [*GoneError]
// it also returns the events that the log holds; the others have an empty Subject. It requests
// lost answers again until ctx ends.
func (t *Texts) Get(ctx context.Context, seqs []uint64) ([]LogMessage, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	out := make([]LogMessage, len(seqs))
	gone, err := t.each(ctx, seqs, func(i int, m LogMessage) []int { out[i] = m; return nil })
	if err != nil {
		return nil, fmt.Errorf("read log by sequence: %w", err)
	}
	if len(gone) > 0 {
		return out, fmt.Errorf("read log by sequence: %w", &GoneError{gone})
	}
	return out, nil
}

// heldMessage estimates the memory of a message without its payload.
const heldMessage = 256

// GetGroups reads groups of events together. The result has at most limit bytes, or only the first
// group: while it is larger, the last group is dropped. A group with an event that the log does not
// hold is dropped too. A dropped group is nil.
func (t *Texts) GetGroups(ctx context.Context, groups [][]uint64, limit int) ([][]LogMessage, error) {
	out, begin := make([][]LogMessage, len(groups)), make([]int, len(groups)+1)
	var seqs []uint64
	var group []int // of each of seqs
	for k := range groups {
		out[k] = make([]LogMessage, len(groups[k]))
		seqs = append(seqs, groups[k]...)
		group = append(group, slices.Repeat([]int{k}, len(groups[k]))...)
		begin[k+1] = len(seqs)
	}
	kept, bytes, total := len(groups), make([]int, len(groups)), 0
	giveUp := func(k int) (drop []int) {
		total -= bytes[k]
		out[k], bytes[k] = nil, 0
		for i := begin[k]; i < begin[k+1]; i++ {
			drop = append(drop, i)
		}
		return drop
	}
	_, err := t.each(ctx, seqs, func(i int, m LogMessage) (drop []int) {
		k := group[i]
		if m.Subject == "" {
			return giveUp(k)
		}
		out[k][i-begin[k]] = m
		bytes[k] += len(m.Data) + heldMessage
		for total += len(m.Data) + heldMessage; total > limit && kept > 1; {
			kept--
			drop = append(drop, giveUp(kept)...)
		}
		return drop
	})
	if err != nil {
		return nil, fmt.Errorf("read log by sequence: %w", err)
	}
	return out, nil
}

// each reads events and calls take with each in the order of arrival, with an empty message for one
// that is gone. take returns the indices of events that are no longer needed.
func (t *Texts) each(ctx context.Context, seqs []uint64, take func(int, LogMessage) (drop []int)) (gone []uint64, err error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	g, err := newGetter(t, seqs, take)
	if err != nil {
		return nil, err
	}
	defer g.sub.Unsubscribe()
	t.relieve()
	t.join(g)
	defer t.leave(g)
	err = g.run(ctx)
	return g.gone, err
}

// join adds a caller to the current sweep, from its position to its end, and to the next one for
// the rest. The end of the current sweep does not move, so every sweep ends.
func (t *Texts) join(g *getter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.callers) == 0 {
		t.sweep++
		t.at, t.end = 0, g.last
		g.split = len(g.order)
	} else {
		from := g.after(t.at)
		to := max(from, g.after(t.end))
		g.order = slices.Concat(g.order[from:to], g.order[:from], g.order[to:])
		g.split = to - from
	}
	g.sweep = t.sweep
	t.callers = append(t.callers, g)
	t.request()
}

// leave removes a caller and releases its slots.
func (t *Texts) leave(g *getter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.callers = slices.DeleteFunc(t.callers, func(c *getter) bool { return c == g })
	t.inFlight -= g.slots
	g.slots = 0
	t.request()
}

// request sends the next requests in the order of the log while slots are free. The caller
// holds mu.
func (t *Texts) request() {
	for len(t.callers) > 0 && t.inFlight < t.window() {
		g := slices.MinFunc(t.callers, compareHeads)
		if s, _ := g.head(); s > t.sweep {
			t.begin(s)
		}
		i := g.order[g.next]
		t.at = g.seqs[i]
		g.states[i] = inSlot
		g.slots++
		g.requested++
		t.inFlight++
		g.sent = time.Now()
		err := g.send(i, subjectDirectGet)
		if err != nil {
			g.broken <- err
		}
		if g.advance(); err != nil || g.next == len(g.order) {
			t.callers = slices.DeleteFunc(t.callers, func(c *getter) bool { return c == g })
		}
	}
}

// begin starts a sweep, which ends at the last event of the present callers. The caller holds mu.
func (t *Texts) begin(sweep uint64) {
	t.sweep, t.at, t.end = sweep, 0, 0
	for _, g := range t.callers {
		t.end = max(t.end, g.last)
	}
	t.big /= 2 // one large text narrows the window only for some sweeps
}

// relieve frees memory before a request: an embedded server reads up to 8 MiB around each event. The caller
// must not hold mu.
func (t *Texts) relieve() { t.scarce.Store(memory.Relieve()) }

// window returns the limit on reads in flight. The caller holds mu.
func (t *Texts) window() int {
	switch {
	case t.scarce.Load():
		return leastInFlight
	case t.big == 0:
		return firstInFlight
	}
	return max(leastInFlight, min(maxInFlight, bytesInFlight/t.big))
}

// awaits records an answer, and reports whether its request is under way.
func (t *Texts) awaits(g *getter, i int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered = time.Now()
	g.answered = t.answered
	return g.states[i] == inSlot || g.states[i] == overdue
}

// finish marks one event as read and others as dropped. It returns the number of events that it
// finished.
func (t *Texts) finish(g *getter, i int, drop []int, bytes int) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.big = max(t.big, bytes)
	for _, k := range append(drop, i) {
		switch g.states[k] {
		case finished:
			continue
		case inSlot:
			g.slots--
			t.inFlight--
			g.requested--
		case overdue:
			g.requested--
		}
		g.states[k] = finished
		n++
	}
	if g.next < len(g.order) && g.states[g.order[g.next]] == finished {
		if g.advance(); g.next == len(g.order) {
			t.callers = slices.DeleteFunc(t.callers, func(c *getter) bool { return c == g })
		}
	}
	t.request()
	return n
}

// takeOverdue returns the events that a caller has to request again: all that are under way, if the
// caller got no answer for its pause and either no caller did or it waits for lastResend. It
// releases the caller's slots.
func (t *Texts) takeOverdue(g *getter) (missed []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	quiet := now.Sub(g.sent)
	if g.requested == 0 || min(quiet, now.Sub(g.answered)) < g.pause || now.Sub(t.answered) < g.pause && quiet < lastResend {
		return nil
	}
	for i, s := range g.states {
		if s == inSlot || s == overdue {
			g.states[i] = overdue
			missed = append(missed, i)
		}
	}
	t.inFlight -= g.slots
	g.slots, g.sent = 0, now
	t.request()
	return missed
}

// head returns the sweep and the sequence of the getter's next request.
func (g *getter) head() (sweep, seq uint64) {
	sweep, seq = g.sweep, g.seqs[g.order[g.next]]
	if g.next >= g.split {
		sweep++
	}
	return sweep, seq
}

// advance moves next to the first event that is still wanted.
func (g *getter) advance() {
	for g.next < len(g.order) && g.states[g.order[g.next]] != wanted {
		g.next++
	}
}

// after returns the first index in order with a higher sequence. It is valid only before join, while
// order is sorted.
func (g *getter) after(seq uint64) int {
	n, _ := slices.BinarySearchFunc(g.order, seq, func(i int, seq uint64) int {
		if g.seqs[i] <= seq {
			return -1
		}
		return 1
	})
	return n
}

// compareHeads orders callers by their next sequence.
func compareHeads(a, b *getter) int {
	sweepA, seqA := a.head()
	sweepB, seqB := b.head()
	return cmp.Or(cmp.Compare(sweepA, sweepB), cmp.Compare(seqA, seqB))
}
