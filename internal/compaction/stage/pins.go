package stage

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Pinned messages stay in view behind a placeholder. System messages stay behind a truncation notice; a
// summary has them in its record. An instruction is short, and must not be paraphrased.
//
// pinShare is the part of the target for pinned messages, the newest first. instructionShare is the part for
// the system messages that a truncation would hide. Messages beyond these are hidden like others: nothing
// keeps a session above its window.
const (
	pinShare         measure.PPM = 500_000
	instructionShare measure.PPM = 250_000
)

// Pin selects the newest pinned messages that take at most their share of target. A message from before fresh
// is not kept: its text will leave the log.
func (d *Draft) Pin(target measure.Tokens, fresh measure.Seq) {
	d.fresh = fresh
	if !d.pinned {
		return
	}
	held := d.holds()
	kept := d.newest(held, pinShare.Share(target), func(e *measure.Entry) bool { return pinned(*e) })
	for i := held; i < len(d.entries); i++ {
		if kept == nil || !kept[i] {
			d.entries[i].Flags &^= measure.FlagPinned
		}
	}
}

func pinned(e measure.Entry) bool { return e.Flags.Has(measure.FlagPinned) }

// pins marks the entries of messages that are pinned, from a position on.
func (d *Draft) pins(from int) []bool {
	if !d.pinned {
		return nil
	}
	return d.newest(from, d.tokens, func(e *measure.Entry) bool { return pinned(*e) })
}

// staying marks the entries that a truncation keeps: pinned ones, the system's, and the user's last prompt.
func (d *Draft) staying(from int, target measure.Tokens) []bool {
	out := d.pins(from)
	for _, kept := range [][]bool{
		d.newest(from, instructionShare.Share(target), func(e *measure.Entry) bool {
			return e.Role == measure.RoleSystem && !e.Flags.Has(measure.FlagEmpty|measure.FlagPinned)
		}),
		d.prompt(from, headRoom(target)),
	} {
		if out == nil {
			out = kept
			continue
		}
		for i := range kept {
			out[i] = out[i] || kept[i]
		}
	}
	return out
}

// prompt marks the user's last message, unless it is before from, or the part of it that cannot be cut costs
// more than most tokens. Results of tools, and words beside them, are no prompt.
func (d *Draft) prompt(from int, most measure.Tokens) []bool {
	for end := len(d.entries); end > from; {
		start := end - 1
		for start > from && d.entries[start-1].SameMessage(&d.entries[start]) {
			start--
		}
		if d.isPrompt(start, end) {
			if d.least(start, end) > most {
				return nil
			}
			out := make([]bool, len(d.entries))
			for i := start; i < end; i++ {
				out[i] = true
			}
			return out
		}
		end = start
	}
	return nil
}

// isPrompt reports whether the entries of a message are words and media of the user.
func (d *Draft) isPrompt(start, end int) bool {
	for i := start; i < end; i++ {
		if e := &d.entries[i]; e.Role != measure.RoleUser || e.Kind != measure.KindWords || e.Seq < d.fresh {
			return false
		}
	}
	return !d.wordless(start)
}

// newest marks the entries of the newest messages that have a wanted entry and cost at most most tokens in
// all, each with the messages of its calls and results. It returns nil for none.
func (d *Draft) newest(from int, most measure.Tokens, want func(*measure.Entry) bool) []bool {
	var out, seen []bool
	var results answered
	for i := len(d.entries) - 1; i >= from; i-- {
		e := &d.entries[i]
		if e.Kind >= measure.KindTruncation || e.Seq < d.fresh || !want(e) || seen != nil && seen[i] {
			continue
		}
		if out == nil {
			out, seen, results = make([]bool, len(d.entries)), make([]bool, len(d.entries)), d.answered()
		}
		group := d.group(i, from, seen, results)
		var cost measure.Tokens
		for _, k := range group {
			cost += d.costs[k]
		}
		if cost > most {
			continue
		}
		most -= cost
		for _, k := range group {
			out[k] = true
		}
	}
	return out
}

// group lists the entries, in no order, of the message at i and of the messages with its calls and results,
// and marks them as seen.
func (d *Draft) group(i, from int, seen []bool, results answered) []int {
	var out []int
	var visit func(i int)
	visit = func(i int) {
		if i < from || seen[i] {
			return
		}
		for i > from && d.entries[i-1].SameMessage(&d.entries[i]) {
			i--
		}
		end := d.nextMessage(i)
		for k := i; k < end; k++ {
			seen[k] = true
			out = append(out, k)
		}
		for k := i; k < end; k++ {
			if call := int(d.pairing().Other[k]); call >= 0 {
				visit(call)
			}
			for result := results.last[k]; result >= 0; result = results.before[result] {
				visit(int(result))
			}
		}
	}
	visit(i)
	return out
}

// answered has the results of calls, which may be several: for each call the last one, for each result the
// one before it; −1 for none.
type answered struct{ last, before []int32 }

func (d *Draft) answered() answered {
	a := answered{make([]int32, len(d.entries)), make([]int32, len(d.entries))}
	other := d.pairing().Other
	for i := range d.entries {
		a.last[i], a.before[i] = -1, -1
		if call := other[i]; d.entries[i].Kind == measure.KindResult && call >= 0 && int(call) < i {
			a.before[i], a.last[call] = a.last[call], int32(i)
		}
	}
	return a
}

// EndOf is the position of the last message represented by entries from ≤ i < to.
func (d *Draft) EndOf(from, to int) events.Position {
	last := measure.MessageOf(d.entries[from].End())
	for i := from + 1; i < to; i++ {
		if end := measure.MessageOf(d.entries[i].End()); end.Compare(last) > 0 {
			last = end
		}
	}
	return last
}
