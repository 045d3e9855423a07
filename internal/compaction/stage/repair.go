package stage

import (
	"cmp"
	"iter"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// Repair makes the history complete. A result that is too late or too early moves to its call. A repeated
// call or result is dropped. A call without a result gets a placeholder result, a result without a call a
// placeholder call. A placeholder that refers to a read no longer in view becomes a cleared result. Reasoning
// without a following message is dropped, as are halves of calls of the provider's own tools whose other half
// will not come. A truncation notice begins the history if the provider requires a user's message first.
// Calls of the last exchange await their results and stay.
func (d *Draft) Repair() {
	d.edit(events.OpClear, d.disowned())
	d.dropSplit()
	d.dropDuplicates()
	d.dropLonely()
	if d.strays() {
		d.move(d.lateResults())
		d.dropSplit() // results may be between the halves now
	}
	for i, o := range d.halves() {
		d.alter(i, func(e *measure.Entry) { *e = e.With(o) })
		d.note(o, i)
	}
	if i := d.opening(); i >= 0 {
		d.set(slices.Insert(d.entries, i, measure.TruncationAt(&d.entries[i])))
	}
}

// Repaired estimates the history after a repair, without changing it. Only if results may move it repairs a
// copy.
func (d *Draft) Repaired() measure.Tokens {
	if !d.known {
		d.repaired, d.known = d.repair(), true
	}
	return d.repaired
}

// repair computes Repaired.
func (d *Draft) repair() measure.Tokens {
	if d.strays() || d.lonely() != nil || d.duplicates() != nil || d.split() != nil {
		c := NewDraft(slices.Clone(d.entries), d.format, d.rate)
		c.Repair()
		return c.tokens
	}
	t := d.tokens
	for _, i := range d.disowned() {
		t -= d.saving(i, events.OpClear)
	}
	for i, o := range d.halves() {
		e := d.entries[i].With(o)
		t += d.rate.Entry(&e) - d.costs[i]
	}
	if i := d.opening(); i >= 0 {
		m := measure.TruncationAt(&d.entries[i])
		t += d.rate.Entry(&m)
	}
	return t
}

// halves yields the calls that get a placeholder result, and the results that get a placeholder call.
func (d *Draft) halves() iter.Seq2[int, events.Op] {
	return func(yield func(int, events.Op) bool) {
		awaiting := d.awaiting()
		for _, i := range d.pairing().lone {
			o := events.OpAnswer
			switch {
			case d.orphan(i):
				o = events.OpCall
			case d.entries[i].Kind == measure.KindResult || i >= awaiting:
				continue
			}
			if !yield(i, o) {
				return
			}
		}
	}
}

// orphan reports whether entry i is a result without a call in its exchange.
func (d *Draft) orphan(i int) bool {
	e := &d.entries[i]
	return e.Kind == measure.KindResult && d.pairing().Other[i] < 0 && !e.Flags.Has(measure.FlagEmpty)
}

// stray reports whether entry i is a result whose call, by its id, may be elsewhere.
func (d *Draft) stray(i int) bool { return d.orphan(i) && d.entries[i].Call != 0 }

func (d *Draft) strays() bool { return slices.ContainsFunc(d.pairing().lone, d.stray) }

// opening returns the position where a truncation notice must begin the conversation, or −1.
func (d *Draft) opening() int {
	if i := d.firstRendered(); d.format.Dialect().UserFirst && i >= 0 && d.assistantBegins(i) {
		return i
	}
	return -1
}

// firstRendered returns the first rendered entry that is not a system message.
func (d *Draft) firstRendered() int {
	for i := range d.entries {
		if e := &d.entries[i]; e.Role != measure.RoleSystem && !e.Flags.Has(measure.FlagEmpty) {
			return i
		}
	}
	return -1
}

// assistantBegins reports whether the message at entry i is rendered as the
// assistant's, or behind a placeholder call.
func (d *Draft) assistantBegins(i int) bool {
	for k, end := i, d.nextMessage(i); k < end; k++ {
		if d.entries[k].Role == measure.RoleAssistant || d.orphan(k) {
			return true
		}
	}
	return false
}

// awaiting returns the beginning of the exchange whose calls still await results: the last one, if only
// results follow its assistant messages. System messages do not count, as they are rendered elsewhere.
func (d *Draft) awaiting() int { return d.pairing().awaiting(d.entries) }

func (p *Pairing) awaiting(entries []measure.Entry) int {
	start := len(entries)
	for i := len(entries) - 1; i >= p.last; i-- {
		e := &entries[i]
		switch {
		case e.Flags.Has(measure.FlagEmpty) || e.Role == measure.RoleSystem:
		case e.Role != measure.RoleAssistant && e.Kind != measure.KindResult:
			return len(entries)
		default:
			start = p.last
		}
	}
	return start
}

// lateResult is a result away from its call.
type lateResult struct{ result, call int }

// lateResults pairs stray results with open calls: the last call of the id before the result, or if there is
// none, the first open call after it that awaits no results. Other results are dropped if their content is
// already shown under the id. The rest get placeholder calls: a result with other content may be of a lost
// call.
func (d *Draft) lateResults() []lateResult {
	other, awaiting := d.pairing().Other, d.awaiting()
	calls := map[dialect.Key][]int{} // of each id
	shown := map[shownResult]bool{}
	for i := range d.entries {
		switch e := &d.entries[i]; {
		case e.Flags.Has(measure.FlagEmpty):
		case e.Kind == measure.KindCall:
			calls[e.Call] = append(calls[e.Call], i)
		case e.Kind == measure.KindResult && other[i] >= 0:
			shown[shownOf(e)] = true
		}
	}
	var out []lateResult
	for i := range d.entries {
		if !d.stray(i) {
			continue
		}
		e := &d.entries[i]
		call := openFor(calls[e.Call], other, i, awaiting)
		switch {
		case call >= 0:
			other[call], other[i] = int32(i), int32(call)
			to := d.entries[call].Position()
			d.edits = append(d.edits, events.Edit{Op: events.OpMove, Position: e.Position(), To: &to})
			out = append(out, lateResult{i, call})
		case shown[shownOf(e)], shown[shownOf(e).asRead()]:
			d.alter(i, func(e *measure.Entry) { e.Flags |= measure.FlagEmpty })
			d.note(events.OpDrop, i)
		}
		shown[shownOf(e)] = true
	}
	return out
}

// openFor returns the call of an id that a result answers, −1 for none: the last one before it, if that is
// open; if there is none before it, the first open one after it that awaits no results.
func openFor(calls []int, other []int32, result, awaiting int) int {
	next, _ := slices.BinarySearch(calls, result)
	if next > 0 {
		if call := calls[next-1]; other[call] < 0 {
			return call
		}
		return -1
	}
	for _, call := range calls {
		if call < awaiting && other[call] < 0 {
			return call
		}
	}
	return -1
}

// shownResult is the content of a result under an id, as far as its entry shows it.
type shownResult struct {
	call, text               dialect.Key
	units, json, base, bytes uint32
	images                   uint32
}

func shownOf(e *measure.Entry) shownResult {
	s := shownResult{e.Call, e.Variant, e.Text, e.JSON, e.Base, e.Bytes, uint32(e.Images)}
	if e.Flags.Has(measure.FlagRead) {
		return s.asRead()
	}
	return s
}

// asRead is the content without the text: the entry of a read shows its sizes only.
func (s shownResult) asRead() shownResult {
	s.text = 0
	return s
}

// move puts results after the assistant's messages with their calls.
func (d *Draft) move(late []lateResult) {
	if len(late) == 0 {
		d.paired = false // results were dropped, and others came behind them
		return
	}
	n := len(d.entries)
	away := make([]bool, n)
	for _, l := range late {
		away[l.result] = true
	}
	behind := d.behindCalls()
	slices.SortStableFunc(late, func(a, b lateResult) int { return cmp.Compare(behind[a.call], behind[b.call]) })
	out := make([]measure.Entry, 0, n)
	for i := 0; i <= n; i++ {
		for ; len(late) > 0 && behind[late[0].call] == i; late = late[1:] {
			e := d.entries[late[0].result]
			e.Flags |= measure.FlagFirst
			out = append(out, e)
		}
		switch {
		case i == n:
		case !away[i]:
			out = append(out, d.entries[i])
		case d.entries[i].Flags.Has(measure.FlagFirst) && i+1 < n && d.entries[i].SameMessage(&d.entries[i+1]):
			d.alter(i+1, func(e *measure.Entry) { e.Flags |= measure.FlagFirst })
		}
	}
	d.set(out)
}

// behindCalls returns for each entry the end of the run of assistant entries in its exchange.
func (d *Draft) behindCalls() []int {
	exchange := exchanges(d.entries, d.format)
	out := make([]int, len(d.entries))
	for i := len(d.entries) - 1; i >= 0; i-- {
		out[i] = i + 1
		if next := i + 1; next < len(d.entries) && exchange[next] == exchange[i] &&
			(d.entries[next].Role == measure.RoleAssistant || d.entries[next].Flags.Has(measure.FlagEmpty)) {
			out[i] = out[next]
		}
	}
	return out
}
