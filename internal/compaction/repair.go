package compaction

import (
	"cmp"
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
	d.disown()
	exchange, pairs := d.reunite()
	tail := d.awaiting(exchange)
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
	if i := d.firstSpoken(); d.format == events.Anthropic && i >= 0 && d.assistantBegins(i) {
		d.entries = slices.Insert(d.entries, i, markerAt(&d.entries[i]))
	}
}

func (d *Draft) note(o events.Op, i int) {
	d.edits = append(d.edits, events.Edit{Op: o, Position: d.entries[i].position()})
}

// disown clears the placeholders whose read is no longer below them: truncated,
// or withdrawn.
func (d *Draft) disown() {
	if !slices.ContainsFunc(d.entries, func(e Entry) bool { return e.Op == opDeduplicate }) {
		return
	}
	latest := d.latestReads()
	for i := range d.entries {
		if e := &d.entries[i]; e.Op == opDeduplicate && latest.after(i, e) < 0 {
			d.edit(i, events.OpClear)
		}
	}
}

// reunite handles results whose call is in view but not in their exchange, and
// returns the exchanges and pairs after that.
func (d *Draft) reunite() (exchange, pairs []int) {
	exchange = d.exchanges()
	pairs = d.pairsWithin(exchange)
	if late := d.late(pairs); len(late) > 0 {
		d.move(late, exchange)
		exchange = d.exchanges()
		pairs = d.pairsWithin(exchange)
	}
	return exchange, pairs
}

// lateResult is a result that stands apart from its call.
type lateResult struct{ result, call int }

// late lists the results that belong to an open call before their exchange. It
// drops those whose call has a result already or comes later, and of several
// without a call all but the first, which gets a placeholder call of that id.
func (d *Draft) late(pairs []int) []lateResult {
	lost := func(i int) bool {
		e := &d.entries[i]
		return e.Kind == KindResult && e.Call != 0 && pairs[i] < 0 && !e.Flags.has(FlagEmpty)
	}
	i := 0
	for i < len(d.entries) && !lost(i) {
		i++
	}
	if i == len(d.entries) {
		return nil // as most histories
	}
	taken := map[Key]bool{} // ids that a call in view has, or a placeholder call will have
	for i := range d.entries {
		if e := &d.entries[i]; e.Kind == KindCall {
			taken[e.Call] = true
		}
	}
	var out []lateResult
	latest := map[Key]int{} // call of each id so far
	for i := range d.entries {
		e := &d.entries[i]
		if e.Kind == KindCall {
			latest[e.Call] = i
		}
		call, known := latest[e.Call]
		switch {
		case !lost(i):
		case !known && !taken[e.Call]:
			taken[e.Call] = true
		case !known || pairs[call] >= 0:
			e.Flags |= FlagEmpty
			d.note(events.OpDrop, i)
		default:
			pairs[call], pairs[i] = i, call
			to := d.entries[call].position()
			d.edits = append(d.edits, events.Edit{Op: events.OpMove, Position: e.position(), To: &to})
			out = append(out, lateResult{i, call})
		}
	}
	return out
}

// move puts results behind the assistant's messages that hold their calls.
func (d *Draft) move(late []lateResult, exchange []int) {
	n := len(d.entries)
	away := make([]bool, n)
	for _, l := range late {
		away[l.result] = true
	}
	behind := d.behindCalls(exchange)
	slices.SortStableFunc(late, func(a, b lateResult) int { return cmp.Compare(behind[a.call], behind[b.call]) })
	out := make([]Entry, 0, n)
	for i := 0; i <= n; i++ {
		for ; len(late) > 0 && behind[late[0].call] == i; late = late[1:] {
			e := d.entries[late[0].result]
			e.Flags |= FlagFirst
			out = append(out, e)
		}
		switch {
		case i == n:
		case !away[i]:
			out = append(out, d.entries[i])
		case d.entries[i].Flags.has(FlagFirst) && i+1 < n && d.entries[i].sameMessage(&d.entries[i+1]):
			d.entries[i+1].Flags |= FlagFirst
		}
	}
	d.entries = out
}

// behindCalls returns for each entry where the run of assistant entries of its
// exchange ends.
func (d *Draft) behindCalls(exchange []int) []int {
	out := make([]int, len(d.entries))
	for i := range slices.Backward(d.entries) {
		out[i] = i + 1
		if next := i + 1; next < len(d.entries) && exchange[next] == exchange[i] &&
			(d.entries[next].Role == RoleAssistant || d.entries[next].Flags.has(FlagEmpty)) {
			out[i] = out[next]
		}
	}
	return out
}

// firstSpoken returns the first entry that is rendered and no system message.
func (d *Draft) firstSpoken() int {
	return slices.IndexFunc(d.entries, func(e Entry) bool {
		return e.Role != RoleSystem && !e.Flags.has(FlagEmpty)
	})
}

// assistantBegins reports whether the message at entry i is rendered as the
// assistant's, or behind a placeholder call.
func (d *Draft) assistantBegins(i int) bool {
	for k := i; k < len(d.entries) && d.entries[k].sameMessage(&d.entries[i]); k++ {
		if d.entries[k].Role == RoleAssistant || d.entries[k].Flags.has(FlagCall) {
			return true
		}
	}
	return false
}

// awaiting returns where the exchange begins whose calls still await results:
// the last one, when nothing but results follows its assistant messages. System
// messages do not count, they are rendered elsewhere.
func (d *Draft) awaiting(exchange []int) int {
	start := len(d.entries)
	for i, e := range slices.Backward(d.entries) {
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
