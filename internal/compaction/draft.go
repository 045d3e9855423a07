package compaction

import "compactd/internal/events"

// Draft is an effective history under the stages: entries in view, and what the
// edits so far made of them. Each stage can be run alone.
type Draft struct {
	entries []Entry
	format  events.Format
	rate    Rate
	edits   []events.Edit
}

// newDraft takes over entries.
func newDraft(entries []Entry, f events.Format, r Rate) *Draft {
	return &Draft{entries: entries, format: f, rate: r}
}

// Tokens estimates the history as it is, without the framing of a conversation.
func (d *Draft) Tokens() Tokens {
	var t Tokens
	for i := range d.entries {
		t += d.rate.Entry(&d.entries[i])
	}
	return t
}

// messages counts the messages in view, markers included.
func (d *Draft) messages() int {
	n := 0
	for i := range d.entries {
		if d.entries[i].Flags.has(FlagFirst) {
			n++
		}
	}
	return n
}

// edit sets the op of an entry and notes it.
func (d *Draft) edit(i int, o events.Op) {
	x := events.Edit{Op: o, Position: d.entries[i].position()}
	d.entries[i].set(&x)
	d.edits = append(d.edits, x)
}

// saving is what an op would save on an entry; it can be negative.
func (d *Draft) saving(i int, o op) Tokens {
	e := d.entries[i]
	before := d.rate.Entry(&e)
	e.Op = o
	return before - d.rate.Entry(&e)
}

// exchanges returns for each entry where its exchange begins: at an assistant
// message that follows another role. In openai each assistant message begins one,
// since results must follow their own; in neurolink so do words of the assistant,
// since none may stand between a call and its result. An entry that is not
// rendered belongs to the exchange around it.
func (d *Draft) exchanges() []int {
	out := make([]int, len(d.entries))
	start, last := 0, -1
	for i := range d.entries {
		if !d.entries[i].Flags.has(FlagEmpty) {
			if last >= 0 && d.begins(last, i) {
				start = i
			}
			last = i
		}
		out[i] = start
	}
	return out
}

// begins reports whether entry i, rendered after entry last, begins an exchange.
func (d *Draft) begins(last, i int) bool {
	before, e := &d.entries[last], &d.entries[i]
	switch {
	case e.Role != RoleAssistant:
		return false
	case before.Role != RoleAssistant:
		return true
	case d.format == events.OpenAI:
		return !before.sameMessage(e)
	case d.format == events.NeuroLink:
		next := i + 1
		return e.Kind == KindWords && (next == len(d.entries) || !e.sameMessage(&d.entries[next]))
	default:
		return false
	}
}

// pairs returns for each entry the position of its counterpart: the call of a
// result, the result of a call; −1 where there is none. A result pairs with a
// call of the same exchange, by id, or by order where either has none.
func (d *Draft) pairs() []int { return d.pairsWithin(d.exchanges()) }

func (d *Draft) pairsWithin(exchange []int) []int {
	out := make([]int, len(d.entries))
	calls := newCalls(len(d.entries))
	begun, oldest := 0, 0 // the exchange, and a place no open call of it is before
	for i := range d.entries {
		e := &d.entries[i]
		out[i] = -1
		if exchange[i] > begun {
			begun, oldest = exchange[i], exchange[i]
			calls.reset()
		}
		switch {
		case e.Flags.has(FlagEmpty):
		case e.Kind == KindCall:
			calls.add(e.Call, i)
		case e.Kind == KindResult:
			call := -1
			if e.Call == 0 {
				for oldest < i && (d.entries[oldest].Kind != KindCall || out[oldest] >= 0) {
					oldest++
				}
				if oldest < i {
					call = oldest
				}
			} else if call = calls.open(e.Call, out); call < 0 {
				call = calls.open(0, out)
			}
			if call >= 0 {
				out[i], out[call] = call, i
			}
		}
	}
	return out
}

// calls finds the oldest open call of an id within an exchange. It costs the same
// however many there are: an agent may send a hundred thousand in a turn.
type calls struct {
	queues map[Key]queue
	next   []int // the call after a call that has the same id
}

type queue struct{ first, last int }

func newCalls(n int) *calls { return &calls{map[Key]queue{}, make([]int, n)} }

// reset forgets the exchange; to clear a map costs what it once held.
func (c *calls) reset() {
	if len(c.queues) > 64 {
		c.queues = map[Key]queue{}
	}
	clear(c.queues)
}

func (c *calls) add(id Key, i int) {
	q, ok := c.queues[id]
	if ok {
		c.next[q.last] = i
	} else {
		q.first = i
	}
	q.last = i
	c.queues[id] = q
}

// open returns the first call of an id that has no counterpart in paired, or −1.
func (c *calls) open(id Key, paired []int) int {
	q, ok := c.queues[id]
	if !ok {
		return -1
	}
	for paired[q.first] >= 0 && q.first != q.last {
		q.first = c.next[q.first]
	}
	c.queues[id] = q
	if paired[q.first] >= 0 {
		return -1
	}
	return q.first
}

// whole reports whether an entry is a tool result that still has its content, if
// only a part of it.
func (e *Entry) whole() bool { return e.Kind == KindResult && (e.Op == opNone || e.Op.trims()) }

// reads reports whether an entry is the content of a file.
func (e *Entry) reads() bool {
	return e.whole() && e.Op == opNone && e.Flags.has(FlagRead) && !e.Flags.has(FlagFailed)
}
