package compaction

import (
	"slices"

	"compactd/internal/events"
)

// Repair makes the history complete. A result that came too late moves to its
// call, one that came twice is dropped; a call without a result gets a
// placeholder result, a result without a call a placeholder call; and where the
// provider wants a user to begin, a marker does. Calls of the last exchange await
// their results and stay as they are.
func (d *Draft) Repair() {
	pairs := d.reunite()
	tail := d.awaiting()
	for i := range d.entries {
		e := &d.entries[i]
		switch {
		case pairs[i] >= 0 || e.Flags.has(FlagEmpty):
		case e.Kind == KindCall && i < tail:
			e.Flags |= FlagAnswer
			d.note(events.OpAnswer, i)
		case e.Kind == KindResult:
			e.Flags |= FlagCall
			d.note(events.OpCall, i)
		}
	}
	if d.format != events.Anthropic {
		return
	}
	if i := d.firstSpoken(); i >= 0 && (d.entries[i].Role == RoleAssistant || d.entries[i].Flags.has(FlagCall)) {
		d.entries = slices.Insert(d.entries, i, markerAt(&d.entries[i]))
	}
}

func (d *Draft) note(o events.Op, i int) {
	d.edits = append(d.edits, events.Edit{Op: o, Position: d.entries[i].position()})
}

// reunite handles results whose call is in view but not in their exchange, and
// returns the pairs.
func (d *Draft) reunite() []int {
	pairs := d.pairs()
	for i := 0; i < len(d.entries); i++ {
		e := d.entries[i]
		if e.Kind != KindResult || pairs[i] >= 0 || e.Call == 0 || e.Flags.has(FlagEmpty) {
			continue
		}
		call := d.callOf(i)
		switch {
		case call < 0:
		case pairs[call] >= 0:
			d.entries[i].Flags |= FlagEmpty
			d.note(events.OpDrop, i)
		default:
			d.move(i, call)
			pairs = d.pairs()
		}
	}
	return pairs
}

// callOf returns the latest call before position i with the id of the entry
// there, or −1.
func (d *Draft) callOf(i int) int {
	for k := i - 1; k >= 0; k-- {
		if d.entries[k].Kind == KindCall && d.entries[k].Call == d.entries[i].Call {
			return k
		}
	}
	return -1
}

// move puts the result at i behind the assistant's messages that hold its call.
func (d *Draft) move(i, call int) {
	e := d.entries[i]
	to := d.entries[call].position()
	d.edits = append(d.edits, events.Edit{Op: events.OpMove, Position: e.position(), To: &to})
	if next := i + 1; e.Flags.has(FlagFirst) && next < len(d.entries) && e.sameMessage(&d.entries[next]) {
		d.entries[next].Flags |= FlagFirst
	}
	e.Flags |= FlagFirst
	after := call + 1
	for d.entries[after].Role == RoleAssistant && (d.format != events.OpenAI || d.entries[after].sameMessage(&d.entries[call])) {
		after++
	}
	d.entries = slices.Insert(slices.Delete(d.entries, i, i+1), after, e)
}

// firstSpoken returns the first entry that is rendered and no system message.
func (d *Draft) firstSpoken() int {
	return slices.IndexFunc(d.entries, func(e Entry) bool {
		return e.Role != RoleSystem && !e.Flags.has(FlagEmpty)
	})
}

// awaiting returns where the exchange begins whose calls still await results:
// the last one, when nothing but results follows its assistant messages.
func (d *Draft) awaiting() int {
	i := len(d.entries) - 1
	skip := func(while func(*Entry) bool) {
		for i >= 0 && (d.entries[i].Flags.has(FlagEmpty) || while(&d.entries[i])) {
			i--
		}
	}
	skip(func(e *Entry) bool { return e.Kind == KindResult })
	if i < 0 || d.entries[i].Role != RoleAssistant {
		return len(d.entries)
	}
	last := d.entries[i]
	skip(func(e *Entry) bool {
		return e.Role == RoleAssistant && (d.format != events.OpenAI || e.sameMessage(&last))
	})
	return i + 1
}
