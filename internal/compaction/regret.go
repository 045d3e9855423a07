package compaction

import (
	"slices"

	"compactd/internal/compaction/measure"
)

// maxGone bounds how many files and how many commands a ledger remembers of those that a
// compaction took out of view.
const maxGone = 64

// regret counts what an agent did again after a compaction had taken its result out of view:
// what would have been needed later. It follows from the log alone. A change of a file makes
// reading it again no regret, and running any command again neither.
// See docs/adr/0043.
type regret struct {
	Reads   []measure.Key `json:"reads,omitzero"` // files whose contents went, the oldest first
	Runs    []measure.Key `json:"runs,omitzero"`  // commands whose results went
	Rereads int64         `json:"rereads,omitzero"`
	Reruns  int64         `json:"reruns,omitzero"`
}

// Regret is how often a session did again what a compaction had taken out of view: files that
// it read, and other calls with the same arguments.
type Regret struct{ Rereads, Reruns int64 }

// Plus adds two counts.
func (r Regret) Plus(o Regret) Regret { return Regret{r.Rereads + o.Rereads, r.Reruns + o.Reruns} }

// Minus is by how much r is more.
func (r Regret) Minus(o Regret) Regret { return Regret{r.Rereads - o.Rereads, r.Reruns - o.Reruns} }

// Regret returns the counts of the session since its first turn.
func (l *Ledger) Regret() Regret { return Regret{l.regret.Rereads, l.regret.Reruns} }

// runOf is the key of a call that reads no file: its tool and arguments; 0 where these are too
// long to be known.
func runOf(call *Entry) measure.Key {
	if call.Variant == 0 || call.Path != 0 {
		return 0
	}
	return call.Tool*0x9e3779b97f4a7c15 ^ call.Variant
}

// called counts a call that came.
func (r *regret) called(call *Entry) {
	switch {
	case call.Path != 0 && !call.Flags.Has(measure.FlagRead):
		r.Reads, _ = without(r.Reads, call.Path)
		r.Runs = nil
	case call.Path != 0:
		var found bool
		if r.Reads, found = without(r.Reads, call.Path); found {
			r.Rereads++
		}
	default:
		var found bool
		if r.Runs, found = without(r.Runs, runOf(call)); found {
			r.Reruns++
		}
	}
}

// without is a list without a key, and whether it had it. Forks share lists: they are never
// written to.
func without(list []measure.Key, key measure.Key) (out []measure.Key, found bool) {
	if !slices.Contains(list, key) {
		return list, false
	}
	return slices.DeleteFunc(slices.Clone(list), func(k measure.Key) bool { return k == key }), true
}

// results are the files and the other calls of which the whole result is in view.
type results struct{ reads, runs []measure.Key }

// results lists what is in view, in its order.
func (l *Ledger) results() (out results) {
	view, calls := l.visible(), map[measure.Key]*Entry{}
	for i := range view {
		switch e := &view[i]; {
		case e.Kind == measure.KindCall:
			calls[e.Call] = e
		case e.Kind == measure.KindRestored && e.Path != 0:
			out.reads = append(out.reads, e.Path)
		case !e.Whole():
		case calls[e.Call] == nil || e.Call == 0:
			if e.Path != 0 {
				out.reads = append(out.reads, e.Path)
			}
		case calls[e.Call].Flags.Has(measure.FlagRead):
			out.reads = append(out.reads, calls[e.Call].Path)
		default:
			if k := runOf(calls[e.Call]); k != 0 {
				out.runs = append(out.runs, k)
			}
		}
	}
	return out
}

// compacted notes what was in view before a compaction, and is not any more.
func (r *regret) compacted(before, after results) {
	r.Reads = gone(r.Reads, before.reads, after.reads)
	r.Runs = gone(r.Runs, before.runs, after.runs)
}

// gone adds to a list what only before has, the newest last, and takes from it what after has.
func gone(list, before, after []measure.Key) []measure.Key {
	in := make(map[measure.Key]bool, len(after))
	for _, k := range after {
		in[k] = true
	}
	var out []measure.Key
	for _, k := range slices.Backward(slices.Concat(list, before)) {
		if len(out) < maxGone && !in[k] {
			in[k] = true
			out = append(out, k)
		}
	}
	slices.Reverse(out)
	return out
}
