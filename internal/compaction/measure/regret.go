package measure

import (
	"slices"

	"compactd/internal/events/dialect"
)

// maxGone bounds the remembered files, and commands, whose results a compaction removed.
const maxGone = 64

// Regret counts calls of an agent that repeat one whose result a compaction had removed: the result was
// needed later. It follows from the log alone. After a change of a file, reading it again is no regret, nor
// is running any command again.
type Regret struct {
	Reads []dialect.Key `json:"reads,omitzero"` // files whose contents were removed, the oldest first
	Runs  []dialect.Key `json:"runs,omitzero"`  // other calls whose results were removed
	Repeated
}

// Repeated counts calls whose results a compaction had removed: reads of the same file, and other calls with
// the same arguments.
type Repeated struct {
	Rereads int64 `json:"rereads,omitzero"`
	Reruns  int64 `json:"reruns,omitzero"`
}

// Plus adds two counts.
func (r Repeated) Plus(o Repeated) Repeated {
	return Repeated{r.Rereads + o.Rereads, r.Reruns + o.Reruns}
}

// Since is the increase since before. A smaller count has begun again with its session.
func (r Repeated) Since(before Repeated) Repeated {
	if r.Rereads < before.Rereads || r.Reruns < before.Reruns {
		return r
	}
	return Repeated{r.Rereads - before.Rereads, r.Reruns - before.Reruns}
}

// Called counts a call.
func (r *Regret) Called(call *Entry) {
	found := false
	switch {
	case call.Path != 0 && !call.Flags.Has(FlagRead):
		r.Reads, _ = without(r.Reads, call.Path)
		r.Runs = nil
	case call.Path != 0:
		if r.Reads, found = without(r.Reads, call.Path); found {
			r.Rereads++
		}
	default:
		if r.Runs, found = without(r.Runs, runOf(call)); found {
			r.Reruns++
		}
	}
}

// Compacted notes the results that a compaction removed.
func (r *Regret) Compacted(before, after Results) {
	r.Reads = gone(r.Reads, before.reads, after.reads)
	r.Runs = gone(r.Runs, before.runs, after.runs)
}

// Results are the files and the other calls whose whole results are in view.
type Results struct{ reads, runs []dialect.Key }

// ResultsOf lists the results of a view, in its order.
func ResultsOf(view []Entry) (out Results) {
	calls := map[dialect.Key]*Entry{}
	for i := range view {
		e := &view[i]
		call := calls[e.Call]
		switch {
		case e.Kind == KindCall:
			calls[e.Call] = e
		case e.Kind == KindRestored && e.Path != 0:
			out.reads = append(out.reads, e.Path)
		case !e.Whole():
		case call == nil || e.Call == 0:
			if e.Path != 0 {
				out.reads = append(out.reads, e.Path)
			}
		case call.Flags.Has(FlagRead):
			out.reads = append(out.reads, call.Path)
		default:
			if k := runOf(call); k != 0 {
				out.runs = append(out.runs, k)
			}
		}
	}
	return out
}

// runOf is the key of a call that reads no file: its tool and arguments; 0 if these are too long to be known.
func runOf(call *Entry) dialect.Key {
	if call.Variant == 0 || call.Path != 0 {
		return 0
	}
	return call.Tool*0x9e3779b97f4a7c15 ^ call.Variant
}

// without returns a list without a key, and whether the key was in it. It never changes the list, which
// copies of a regret share.
func without(list []dialect.Key, key dialect.Key) (out []dialect.Key, found bool) {
	if !slices.Contains(list, key) {
		return list, false
	}
	return slices.DeleteFunc(slices.Clone(list), func(k dialect.Key) bool { return k == key }), true
}

// gone adds the keys that are only in before to a list, the newest last, and removes the keys in after.
func gone(list, before, after []dialect.Key) []dialect.Key {
	in := make(map[dialect.Key]bool, len(after))
	for _, k := range after {
		in[k] = true
	}
	var out []dialect.Key
	for _, k := range slices.Backward(slices.Concat(list, before)) {
		if len(out) < maxGone && !in[k] {
			in[k] = true
			out = append(out, k)
		}
	}
	slices.Reverse(out)
	return out
}
