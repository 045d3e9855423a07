package compaction

import (
	"cmp"
	"slices"

	"compactd/internal/compaction/measure"
)

// restorable walks over what may be restored, newest first: of each file its latest read,
// unless the file was changed after it, the results of protected tools, and the texts of
// skills. Of a skill that was launched again in the same way only the latest text counts.
// An entry that was cleared before stays cleared.
func (l *Ledger) restorable(yield func(Entry) bool) {
	least := max(l.entries.n-maxRestoreLookback, 0)
	stale := make(map[measure.Key]bool, 128) // files that were read or changed later
	p := l.cache.policy
	launchers := measure.KeysOf(p.Restore.SkillTools)
	protected, fresh := slices.Concat(measure.KeysOf(p.Prune.ProtectedTools), launchers), l.fresh(2)
	launched := map[[2]measure.Key]bool{} // skills whose text came later too
	var at step
	for i := l.entries.n - 1; i >= least; i-- {
		e := l.entries.at(i)
		read := e.Flags.Has(measure.FlagRead)
		if e.Seq < fresh {
			return // its text leaves the log soon, and that of all before it
		}
		if i < at.from || at.to == 0 {
			at = l.stepAt(i, launchers)
		}
		if writes(e) {
			stale[e.Path] = true
		}
		if k := slices.Index(at.texts, i); k >= 0 {
			if l.launchedAgain(at.launches[k], launched) {
				continue
			}
			if !yield(l.again(i, -1)) {
				return
			}
			continue
		}
		if e.Kind != measure.KindResult || e.Flags&(measure.FlagFailed|measure.FlagEmpty) != 0 || !read && !slices.Contains(protected, e.Tool) {
			continue
		}
		if read {
			old := stale[e.Path]
			stale[e.Path] = true
			if old {
				continue
			}
		}
		if !e.Whole() || e.Text == 0 || slices.Contains(at.launches, i) {
			continue
		}
		if slices.Contains(launchers, e.Tool) && l.launchedAgain(i, launched) {
			continue
		}
		call := l.callOf(e, i)
		if read && call >= 0 && l.written(e.Path, max(call, least), i) {
			continue
		}
		if !yield(l.again(i, call)) {
			return
		}
	}
}

// launchedAgain notes that the result at n is that of a skill, and reports whether a later
// one is of the same call.
func (l *Ledger) launchedAgain(n int, launched map[[2]measure.Key]bool) bool {
	e := l.entries.at(n)
	call := l.callOf(e, n)
	if call < 0 || l.entries.at(call).Variant == 0 {
		return false
	}
	key := [2]measure.Key{e.Tool, l.entries.at(call).Variant}
	again := launched[key]
	launched[key] = true
	return again
}

// step is what stands between two messages of an assistant: the results of its calls, and
// what a user or an agent adds to them.
type step struct {
	from, to int
	// launches are results that only report that a skill was launched, and texts the
	// words with the texts of these skills, as many; both in their order.
	launches, texts []int
}

// stepAt is the step that ends with the entry at n, which is the last of the ledger or
// comes before a call or words of an assistant. A skill whose result is not its text has
// it in words of the user behind the result; of several words those are its, and not a
// reminder, that are longer.
func (l *Ledger) stepAt(n int, launchers []measure.Key) step {
	s := step{from: n, to: n + 1}
	if l.entries.at(n).Role == measure.RoleAssistant {
		return s
	}
	for s.from > 0 && l.entries.at(s.from-1).Role != measure.RoleAssistant {
		s.from--
	}
	if len(launchers) == 0 {
		return s
	}
	for i := s.from; i < s.to; i++ {
		switch e := l.entries.at(i); {
		case e.Kind == measure.KindResult && slices.Contains(launchers, e.Tool) && !e.Flags.Has(measure.FlagFailed|measure.FlagEmpty):
			s.launches = append(s.launches, i)
		case e.Kind == measure.KindWords && e.Role == measure.RoleUser && e.Text > 0 && len(s.launches) > 0:
			s.texts = append(s.texts, i)
		}
	}
	s.pair(func(i int) uint32 { return l.entries.at(i).Text })
	return s
}

// pair leaves as many launches as texts: the longest words, and the shortest results,
// as long as the words are longer than its result.
func (s *step) pair(size func(int) uint32) {
	slices.SortStableFunc(s.launches, func(a, b int) int { return cmp.Compare(size(a), size(b)) })
	slices.SortStableFunc(s.texts, func(a, b int) int { return cmp.Compare(size(b), size(a)) })
	n := 0
	for n < min(len(s.launches), len(s.texts)) && size(s.texts[n]) > size(s.launches[n]) {
		n++
	}
	s.launches, s.texts = s.launches[:n], s.texts[:n]
	slices.Sort(s.launches)
	slices.Sort(s.texts)
}

// maxRestoreLookback is how many of the newest entries are searched for what may
// be restored: nothing older was read recently.
const maxRestoreLookback = 4_096

// writes reports whether an entry is a call that changes a file.
func writes(e *Entry) bool {
	return e.Kind == measure.KindCall && e.Path != 0 && !e.Flags.Has(measure.FlagRead)
}

// written reports whether a file is changed between a call and its result: calls of one
// message run in their order, whenever their results come.
func (l *Ledger) written(file measure.Key, call, result int) bool {
	for i := call; i < result; i++ {
		if e := l.entries.at(i); writes(e) && e.Path == file {
			return true
		}
	}
	return false
}

// again is the entry in a view that shows a result, or the text of a skill, again. Its
// ceiling is the whole text, and its head.
func (l *Ledger) again(at, call int) Entry {
	e := *l.entries.at(at)
	e.Kind, e.Role, e.Flags, e.Op, e.Images, e.Documents, e.Pages = measure.KindRestored, measure.RoleUser, measure.FlagFirst|e.Flags&measure.FlagRead, measure.OpTrim, 0, 0, 0
	e.Ceiling = e.Text + measure.RestoreNotice + uint32(e.PathUnits)
	e.Call, e.Variant, e.JSON = 0, 0, 0
	if call >= 0 {
		c := l.entries.at(call)
		e.Call, e.Variant = measure.Key(c.Index)<<32|measure.Key(c.Part), measure.Key(c.Seq)
	}
	return e
}

// kept appends the messages of a hidden range that stay in view: those that the generation
// kept which hid it.
func (l *Ledger) kept(out []Entry, s span) []Entry {
	for _, m := range l.edits {
		if m.op != measure.OpKeep || int64(m.gen) != s.gen || int(m.entry) < s.from || int(m.entry) >= s.to {
			continue
		}
		first := l.entries.at(int(m.entry))
		for i := int(m.entry); i < s.to && l.entries.at(i).SameMessage(first); i++ {
			out = append(out, *l.entries.at(i))
		}
	}
	return out
}

// restored lists what a view shows behind a hidden range, in the order it came
// back. Only the range that a lineage hid last has any: each decides again.
func (l *Ledger) restored(s span, in []bool) []Entry {
	i := len(l.hidden) - 1
	for !in[l.hidden[i].gen] {
		i--
	}
	if last := &l.hidden[i]; s.gen != last.gen || s.from != last.from || s.to != last.to {
		return nil
	}
	var out []Entry
	for _, m := range l.edits {
		if m.op != measure.OpRestore || !in[m.gen] || int64(m.gen) < s.gen {
			continue
		}
		at := int(m.entry)
		call := -1
		if x := l.entries.at(at); x.Kind == measure.KindResult {
			call = l.callOf(x, at)
		}
		e := l.again(at, call)
		e.Ceiling = m.units
		out = slices.DeleteFunc(out, func(x Entry) bool { return x.Position() == e.Position() })
		if m.units > 0 {
			out = append(out, e)
		}
	}
	return out
}

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
