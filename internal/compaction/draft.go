package compaction

import (
	"slices"

	"compactd/internal/events"
)

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
	d.entries[i].Op = opOf(o)
	d.edits = append(d.edits, events.Edit{Op: o, Position: d.entries[i].position()})
}

// saving is what an op would save on an entry; it can be negative.
func (d *Draft) saving(i int, o op) Tokens {
	e := d.entries[i]
	before := d.rate.Entry(&e)
	e.Op = o
	return before - d.rate.Entry(&e)
}

// pairs returns for each entry the position of its counterpart: the call of a
// result, the result of a call; −1 where there is none. A result pairs with a
// call of the same exchange, by id, or by order where ids are absent. An exchange
// begins at an assistant message that follows another role; in openai at each
// assistant message, since results must follow their own.
func (d *Draft) pairs() []int {
	out := make([]int, len(d.entries))
	var open []int
	var last *Entry // that is rendered
	for i := range d.entries {
		e := &d.entries[i]
		out[i] = -1
		if e.Flags.has(FlagEmpty) {
			continue
		}
		if d.begins(last, e) {
			open = open[:0]
		}
		last = e
		switch e.Kind {
		case KindCall:
			open = append(open, i)
		case KindResult:
			k := slices.IndexFunc(open, func(c int) bool { return d.entries[c].Call == e.Call || e.Call == 0 })
			if k >= 0 {
				out[i], out[open[k]] = open[k], i
				open = slices.Delete(open, k, k+1)
			}
		}
	}
	return out
}

// begins reports whether e, after last, begins an exchange.
func (d *Draft) begins(last, e *Entry) bool {
	if e.Role != RoleAssistant {
		return false
	}
	return last == nil || last.Role != RoleAssistant || d.format == events.OpenAI && !last.sameMessage(e)
}

// whole reports whether an entry is a tool result that still has its content.
func (e *Entry) whole() bool { return e.Kind == KindResult && e.Op == opNone }

// reads reports whether an entry is the content of a file.
func (e *Entry) reads() bool {
	return e.whole() && e.Flags.has(FlagRead) && !e.Flags.has(FlagFailed)
}
