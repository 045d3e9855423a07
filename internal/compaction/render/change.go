package render

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// The renderer makes the changes that a provider's form requires, and lists each as an edit of an original
// message. A message made by compactd has no position to name.

// note lists a change of a message, if it is an original.
func (r *renderer) note(op events.Op, m *message) { r.noteBehind(op, m, nil) }

// noteBehind lists a change of a message that follows another one, nil for none.
func (r *renderer) noteBehind(op events.Op, m, other *message) {
	if m.first.Turn == 0 {
		return
	}
	e := events.Edit{Op: op, Position: m.first}
	if other != nil && other.first.Turn > 0 {
		to := other.last
		e.To = &to
	}
	r.changes = append(r.changes, e)
}

// joined lists that a message and the one before it become one.
func (r *renderer) joined(before, m *message) {
	if m.first.Turn == 0 {
		r.note(events.OpJoin, before)
		return
	}
	r.noteBehind(events.OpJoin, m, before)
}

// placed lists that a message moves to position n of the history so far.
func (r *renderer) placed(m message, n int) { r.placedBehind(m, r.came(m, r.out[:n])) }

// placedBehind lists that a message moves behind another, nil for none.
func (r *renderer) placedBehind(m message, before *message) { r.noteBehind(events.OpPlace, &m, before) }

// came searches the lists in order, each from its end, and returns the first original message that is not
// part of m, or nil.
func (r *renderer) came(m message, lists ...[]message) *message {
	for _, list := range lists {
		for i := len(list) - 1; i >= 0; i-- {
			if before := &list[i]; before.first.Turn > 0 && before.first != m.first {
				return before
			}
		}
	}
	return nil
}

// noteUnbound lists the messages that lose their thinking. Neighbours without other thinking between them are
// one edit.
func (r *renderer) noteUnbound() {
	if !r.view.Thinking.Bound {
		return
	}
	open := false
	for i := range r.view.Entries {
		e := &r.view.Entries[i]
		switch {
		case !e.Flags.Has(measure.FlagThinking) || e.Kind >= measure.KindTruncation:
		case !r.view.Thinking.drops(e):
			open = false
		case open:
			to := measure.MessageOf(e.Position())
			r.changes[len(r.changes)-1].To = &to
		default:
			r.changes = append(r.changes, events.Edit{Op: events.OpUnbind, Position: measure.MessageOf(e.Position())})
			open = true
		}
	}
}
