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

// How many reads are in flight at once. The number starts low and grows while the payloads
// are small: the server disconnects a client that has 64 MiB pending.
const (
	maxInFlight   = 64
	firstInFlight = 8
	leastInFlight = 2
	bytesInFlight = 24 << 20
)

// Texts reads events of the log by sequence, for many callers at once. Their requests are
// joined in sweeps, in the order of the log.
//
// A server reads a whole block of its file around each event, up to 8 MiB. The turns of a
// session are in as many blocks as all sessions have filled meanwhile, and the few blocks that
// fit into the server's memory are others when the next session is read. In a sweep each
// block is read once, for everyone. See docs/adr/0032.
type Texts struct {
	nc     *nats.Conn
	pause  time.Duration // see firstResend
	scarce atomic.Bool   // memory was short before the newest request

	mu       sync.Mutex // guards the fields below, and those that getter names
	callers  []*getter  // that have something to request
	sweep    uint64     // its number
	at, end  uint64     // sequences: what was requested last in this sweep, and the last of it
	inFlight int        // slots that are taken
	big      int        // the largest payload, of late
	answered time.Time  // when the last answer came, to anyone
}

// NewTexts returns a line of readers over a connection.
func NewTexts(nc *nats.Conn) *Texts { return &Texts{nc: nc, pause: firstResend} }

// Get reads single events by sequence and returns them in the order of seqs. With a
// [*GoneError] the events that the log holds are returned too, and the others have an empty
// Subject. Lost answers are requested again until ctx ends.
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

// heldMessage is what a message takes in memory beside its payload, about.
const heldMessage = 256

// GetGroups reads groups of events together. The result has at most limit bytes, or is the
// first group alone: while it is larger, the last group is given up. So is a group of which the
// log does not hold everything. A group that was given up is nil.
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

// each reads events, and passes them on as they come, an empty one for what is gone. take
// returns the indices of those that are not wanted any more.
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

// join lets a caller take part in the sweep that is under way, from where it is up to where
// it ends, and in the next one for the rest: so no sweep is without end.
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

// leave gives up what a caller has in the line.
func (t *Texts) leave(g *getter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.callers = slices.DeleteFunc(t.callers, func(c *getter) bool { return c == g })
	t.inFlight -= g.slots
	g.slots = 0
	t.request()
}

// request sends what comes next in the order of the log, as far as there are slots. The
// caller holds mu.
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

// begin starts a sweep, which ends where the callers of now end. The caller holds mu.
func (t *Texts) begin(sweep uint64) {
	t.sweep, t.at, t.end = sweep, 0, 0
	for _, g := range t.callers {
		t.end = max(t.end, g.last)
	}
	t.big /= 2 // one large text does not narrow the window for ever
}

// relieve makes room before a request: an embedded server reads up to 8 MiB around each event. The caller does
// not hold mu.
func (t *Texts) relieve() { t.scarce.Store(memory.Relieve()) }

// window is how many reads may be in flight. The caller holds mu.
func (t *Texts) window() int {
	switch {
	case t.scarce.Load():
		return leastInFlight
	case t.big == 0:
		return firstInFlight
	}
	return max(leastInFlight, min(maxInFlight, bytesInFlight/t.big))
}

// awaits reports whether a request is under way.
func (t *Texts) awaits(g *getter, i int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered = time.Now()
	g.answered = t.answered
	return g.states[i] == inSlot || g.states[i] == overdue
}

// finish notes that one event was read, and that others are not wanted any more. It returns
// how many are less.
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

// takeOverdue returns what a caller has to request again: all that is under way, when it got no
// answer for its pause, and others got none either or it waits for long. Its slots are for
// others then.
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

// head is the sweep and the sequence of what a getter requests next.
func (g *getter) head() (sweep, seq uint64) {
	sweep, seq = g.sweep, g.seqs[g.order[g.next]]
	if g.next >= g.split {
		sweep++
	}
	return sweep, seq
}

// advance goes on to what is next wanted.
func (g *getter) advance() {
	for g.next < len(g.order) && g.states[g.order[g.next]] != wanted {
		g.next++
	}
}

// after is the first place in the order behind a sequence, before a getter joins.
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
