package compaction

import (
	"iter"
	"slices"

	"compactd/internal/events"
)

// Repair makes the history complete. A result that came too late moves to its
// call, one that came twice is dropped; a call without a result gets a
// placeholder result, a result without a call a placeholder call; a placeholder
// that refers to a read which is no longer in view says that the result is gone;
// and where the provider wants a user to begin, a marker does. Calls of the last
// exchange await their results and stay as they are.
func (d *Draft) Repair() {
	d.edit(events.OpClear, d.disowned())
	if d.strays() {
		d.move(d.lateResults())
	}
	for i, o := range d.halves() {
		d.put(i, d.entries[i].with(o))
		d.note(o, i)
	}
	if i := d.opening(); i >= 0 {
		d.set(slices.Insert(d.entries, i, truncationAt(&d.entries[i])))
	}
}

// repaired estimates what the history costs once it is repaired, and leaves it as
// it is. Only where results may move is a copy repaired to find out.
func (d *Draft) repaired() Tokens {
	if d.strays() {
		c := newDraft(slices.Clone(d.entries), d.format, d.rate)
		c.Repair()
		return c.tokens
	}
	t := d.tokens
	for _, i := range d.disowned() {
		t -= d.saving(i, events.OpClear)
	}
	for i, o := range d.halves() {
		e := d.entries[i].with(o)
		t += d.rate.Entry(&e) - d.costs[i]
	}
	if i := d.opening(); i >= 0 {
		m := truncationAt(&d.entries[i])
		t += d.rate.Entry(&m)
	}
	return t
}

// halves walks over the calls that get a placeholder result, and the results that
// get a placeholder call.
func (d *Draft) halves() iter.Seq2[int, events.Op] {
	return func(yield func(int, events.Op) bool) {
		awaiting := d.awaiting()
		for _, i := range d.pairing().lone {
			o := events.OpAnswer
			switch {
			case d.orphan(i):
				o = events.OpCall
			case d.entries[i].Kind == KindResult || i >= awaiting:
				continue
			}
			if !yield(i, o) {
				return
			}
		}
	}
}

// with is the entry with a placeholder for its counterpart.
func (e Entry) with(o events.Op) Entry {
	if o == events.OpAnswer {
		e.Flags |= FlagAnswer
	} else {
		e.Flags |= FlagCall
	}
	return e
}

// orphan reports whether entry i is a result without a call in its exchange.
func (d *Draft) orphan(i int) bool {
	e := &d.entries[i]
	return e.Kind == KindResult && d.pairing().other[i] < 0 && !e.Flags.has(FlagEmpty)
}

// stray reports whether entry i is a result whose call, as its id tells, may be
// elsewhere.
func (d *Draft) stray(i int) bool { return d.orphan(i) && d.entries[i].Call != 0 }

func (d *Draft) strays() bool { return slices.ContainsFunc(d.pairing().lone, d.stray) }

// opening returns where a marker has to begin the conversation, or −1.
func (d *Draft) opening() int {
	if i := d.firstRendered(); d.format == events.Anthropic && i >= 0 && d.assistantBegins(i) {
		return i
	}
	return -1
}

// firstSpoken returns the first entry that is rendered and no system message.
func (d *Draft) firstRendered() int {
	for i := range d.entries {
		if e := &d.entries[i]; e.Role != RoleSystem && !e.Flags.has(FlagEmpty) {
			return i
		}
	}
	return -1
}

// assistantBegins reports whether the message at entry i is rendered as the
// assistant's, or behind a placeholder call.
func (d *Draft) assistantBegins(i int) bool {
	for k := i; k < len(d.entries) && d.entries[k].sameMessage(&d.entries[i]); k++ {
		if d.entries[k].Role == RoleAssistant || d.orphan(k) {
			return true
		}
	}
	return false
}

// awaiting returns where the exchange begins whose calls still await results:
// the last one, when nothing but results follows its assistant messages. System
// messages do not count, they are rendered elsewhere.
func (d *Draft) awaiting() int {
	exchange := d.pairing().exchange
	start := len(d.entries)
	for i := len(d.entries) - 1; i >= 0; i-- {
		e := &d.entries[i]
		switch {
		case e.Flags.has(FlagEmpty) || e.Role == RoleSystem:
		case start < len(d.entries) && exchange[i] != start:
			return start
		case e.Role != RoleAssistant && e.Kind != KindResult:
			return len(d.entries)
		default:
			start = exchange[i]
		}
	}
	return start
}
