package stage

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/events/traits"
)

// A call whose id the provider does not accept, or whose id another call has, gets another id, and so does
// its result. The new id depends on the old one and, for a repeated id, on the place of the call: it is the
// same in every view with the earlier call. Calls that await their results keep their ids, since the results
// still come under them.

// Renamed are calls and results by their position. The value is the place of the call for a repeated id, and
// has no turn for an id that is not accepted.
type Renamed map[int]events.Position

// Rename finds them in the entries of a repaired history.
func Rename(entries []measure.Entry, f events.Format, demands *traits.Demands) Renamed {
	out := Renamed{}
	scope, seen := -1, map[dialect.Key]bool{}
	if demands.UniqueIDs {
		seen = make(map[dialect.Key]bool, len(entries)/2) // of one call and one result each, mostly
	}
	starts := exchanges(entries, f)
	for i := range entries {
		e := &entries[i]
		if !e.Called() {
			continue
		}
		if starts[i] != scope && !demands.UniqueIDs {
			seen = map[dialect.Key]bool{} // clearing a large map would take as long each time
		}
		scope = starts[i]
		switch {
		case seen[e.Call] && (demands.UniqueIDs || f.Dialect().Paired):
			out[i] = e.Position()
		case !demands.IDs.Takes(e.Call.IDClass()):
			out[i] = events.Position{}
		}
		seen[e.Call] = true
	}
	if len(out) == 0 {
		return nil
	}
	p := Pair(entries, f)
	open := p.awaiting(entries)
	for i := range entries {
		at, ok := out[i]
		switch call := p.Other[i]; {
		case ok && at.Turn == 0 && i >= open && call < 0 && entries[i].Kind == measure.KindCall:
			delete(out, i)
		case entries[i].Kind == measure.KindResult && call >= 0:
			if at, ok := out[int(call)]; ok {
				out[i] = at
			}
		}
	}
	return out
}

// duplicates lists repeated calls: the same call again in its exchange, under the same id, without a result
// of its own.
func (d *Draft) duplicates() (out []int) {
	if !d.format.Dialect().Paired || !slices.ContainsFunc(d.pairing().lone, func(i int) bool { return d.entries[i].Kind == measure.KindCall }) {
		return nil
	}
	starts, other := exchanges(d.entries, d.format), d.pairing().Other
	type place struct {
		exchange int
		call     dialect.Key
	}
	first := map[place]int{}
	for i := range d.entries {
		e := &d.entries[i]
		if e.Kind != measure.KindCall || e.Call == 0 || e.Flags.Has(measure.FlagEmpty) {
			continue
		}
		at := place{starts[i], e.Call}
		k, again := first[at]
		if !again {
			first[at] = i
		} else if x := &d.entries[k]; other[i] < 0 && e.Tool == x.Tool && e.Path == x.Path && e.Variant == x.Variant && e.JSON == x.JSON {
			out = append(out, i)
		}
	}
	return out
}

// dropDuplicates removes repeated calls from the history, with the reasoning beside them.
func (d *Draft) dropDuplicates() {
	all := d.duplicates()
	for k, i := range all {
		d.drop(i)
		if last := k+1 == len(all) || !d.entries[all[k+1]].SameMessage(&d.entries[i]); last {
			d.dropThoughts(i)
		}
	}
}

// dropThoughts removes the reasoning from a call's message, if the message has no other call.
func (d *Draft) dropThoughts(call int) {
	from, to := call, d.nextMessage(call)
	for from > 0 && d.entries[from-1].SameMessage(&d.entries[call]) {
		from--
	}
	if slices.ContainsFunc(d.entries[from:to], func(e measure.Entry) bool { return e.Kind == measure.KindCall && !e.Flags.Has(measure.FlagEmpty) }) {
		return
	}
	for i := from; i < to; i++ {
		if d.entries[i].Flags.Has(measure.FlagThinking) {
			d.alter(i, func(e *measure.Entry) { e.Flags |= measure.FlagEmpty })
		}
	}
}
