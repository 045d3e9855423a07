package compaction

import (
	"cmp"
	"slices"

	"compactd/internal/events"
)

// lateResult is a result that stands apart from its call.
type lateResult struct{ result, call int }

// late lists the results that belong to an open call before their exchange. It
// drops those whose call has a result already or comes later, and of several
// without a call all but the first, which gets a placeholder call of that id.
// See docs/adr/0004.
func (d *Draft) lateResults() []lateResult {
	other := d.pairing().other
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
		case !d.stray(i):
		case !known && !taken[e.Call]:
			taken[e.Call] = true
		case !known || other[call] >= 0:
			dropped := *e
			dropped.Flags |= FlagEmpty
			d.put(i, dropped)
			d.note(events.OpDrop, i)
		default:
			other[call], other[i] = i, call
			to := d.entries[call].position()
			d.edits = append(d.edits, events.Edit{Op: events.OpMove, Position: e.position(), To: &to})
			out = append(out, lateResult{i, call})
		}
	}
	return out
}

// move puts results behind the assistant's messages that hold their calls.
func (d *Draft) move(late []lateResult) {
	if len(late) == 0 {
		d.pairs = nil // results were dropped, and others stood behind them
		return
	}
	n := len(d.entries)
	away := make([]bool, n)
	for _, l := range late {
		away[l.result] = true
	}
	behind := d.behindCalls()
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
			next := d.entries[i+1]
			next.Flags |= FlagFirst
			d.put(i+1, next)
		}
	}
	d.set(out)
}

// behindCalls returns for each entry where the run of assistant entries of its
// exchange ends.
func (d *Draft) behindCalls() []int {
	exchange := d.pairing().exchange
	out := make([]int, len(d.entries))
	for i := len(d.entries) - 1; i >= 0; i-- {
		out[i] = i + 1
		if next := i + 1; next < len(d.entries) && exchange[next] == exchange[i] &&
			(d.entries[next].Role == RoleAssistant || d.entries[next].Flags.has(FlagEmpty)) {
			out[i] = out[next]
		}
	}
	return out
}
