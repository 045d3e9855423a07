package compaction

import (
	"cmp"
	"slices"

	"compactd/internal/compaction/measure"
)

// FileUsage is what a ledger holds about one file: no path, since a ledger keeps no text,
// but where the log has it.
type FileUsage struct {
	Reads, Changes int64
	First, Last    int64 // turns that use it
	Restorable     bool  // its latest read may be shown again after it was hidden
	Seq            Seq   // of the turn that names it
	Index, Part    int   // of the part that names it, in that turn

	path measure.Key
	last int // entry that uses it last
}

// Names reports whether a path is that of the file.
func (f *FileUsage) Names(path string) bool { return measure.KeyOf(path) == f.path }

// Files lists the files that calls of tools have read and changed, the one used last
// first.
func (l *Ledger) Files(c *Config) []FileUsage {
	l.use(c)
	restorable := map[measure.Key]bool{}
	if l.cache.policy.Restore.Enabled {
		for e := range l.restorable {
			restorable[e.Path] = true
		}
	}
	at, out := map[measure.Key]int{}, []FileUsage{}
	for i := range l.entries.n {
		e := l.entries.at(i)
		if e.Path == 0 || e.Kind == measure.KindResult && l.callOf(e, i) >= 0 {
			continue // its call counts
		}
		k, seen := at[e.Path]
		if !seen {
			k = len(out)
			at[e.Path] = k
			out = append(out, FileUsage{First: int64(e.Turn), Restorable: restorable[e.Path], path: e.Path})
		}
		out[k].use(e, i)
	}
	slices.SortFunc(out, func(a, b FileUsage) int { return cmp.Compare(b.last, a.last) })
	return out
}

// use notes one use of the file.
func (f *FileUsage) use(e *Entry, i int) {
	if e.Kind == measure.KindCall && !e.Flags.Has(measure.FlagRead) {
		f.Changes++
	} else {
		f.Reads++
	}
	f.Last, f.Seq, f.Index, f.Part, f.last = int64(e.Turn), e.Seq, int(e.Index), int(e.Part), i
}
