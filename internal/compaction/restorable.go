package compaction

import (
	"cmp"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/dialect"
)

// restorable iterates over entries that may be restored, newest first: the latest read of each file, unless
// the file was changed after it, the results of protected tools, and the texts of skills. Of a skill that was
// launched again in the same way only the latest text counts. Cleared entries stay cleared.
func (l *Ledger) restorable(yield func(measure.Entry) bool) {
	least := max(l.entries.n-maxRestoreLookback, 0)
	stale := make(map[dialect.Key]bool, 128) // files read or changed later
	p := l.cache.policy
	launchers := measure.KeysOf(p.Restore.SkillTools)
	protected, fresh := slices.Concat(measure.KeysOf(p.Prune.ProtectedTools), launchers), l.fresh(2)
	launched := map[[2]dialect.Key]bool{} // skills with a later text
	var at step
	for i := l.entries.n - 1; i >= least; i-- {
		e := l.entries.at(i)
		read := e.Flags.Has(measure.FlagRead)
		if e.Seq < fresh {
			return // its text leaves the log soon, as does all before it
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

// launchedAgain notes that the result at n is of a skill, and reports whether a later one has the same call.
func (l *Ledger) launchedAgain(n int, launched map[[2]dialect.Key]bool) bool {
	e := l.entries.at(n)
	call := l.callOf(e, n)
	if call < 0 || l.entries.at(call).Variant == 0 {
		return false
	}
	key := [2]dialect.Key{e.Tool, l.entries.at(call).Variant}
	again := launched[key]
	launched[key] = true
	return again
}

// step is the content between two messages of an assistant: the results of its calls, and words that a user
// or an agent adds.
type step struct {
	from, to int
	// launches are results that only report that a skill was launched, and texts the
	// words with the texts of these skills, as many; both in their order.
	launches, texts []int
}

// stepAt returns the step that ends with the entry at n, the last of the ledger or the last before a call or
// words of an assistant. If the result of a skill is not its text, the text is in words of the user after the
// result; of several words the longer ones are the text, the others reminders.
func (l *Ledger) stepAt(n int, launchers []dialect.Key) step {
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

// pair leaves as many launches as texts: the longest words, and the shortest results, while the words are
// longer than the result.
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

// maxRestoreLookback bounds the newest entries that are searched: older ones were not read recently.
const maxRestoreLookback = 4_096

// writes reports whether an entry is a call that changes a file.
func writes(e *measure.Entry) bool {
	return e.Kind == measure.KindCall && e.Path != 0 && !e.Flags.Has(measure.FlagRead)
}

// written reports whether a file is changed between a call and its result: calls of one message run in order,
// and their results may come later.
func (l *Ledger) written(file dialect.Key, call, result int) bool {
	for i := call; i < result; i++ {
		if e := l.entries.at(i); writes(e) && e.Path == file {
			return true
		}
	}
	return false
}

// again is the entry in a view that shows a result, or the text of a skill, again. Its ceiling covers the
// whole text and its head.
func (l *Ledger) again(at, call int) measure.Entry {
	e := *l.entries.at(at)
	e.Kind, e.Role, e.Flags, e.Op, e.Images, e.Documents, e.Pages = measure.KindRestored, measure.RoleUser, measure.FlagFirst|e.Flags&measure.FlagRead, measure.OpTrim, 0, 0, 0
	e.Ceiling = e.Text + measure.RestoreNotice + uint32(e.PathUnits)
	e.Call, e.Variant, e.JSON = 0, 0, 0
	if call >= 0 {
		c := l.entries.at(call)
		e.Call, e.Variant = dialect.Key(c.Index)<<32|dialect.Key(c.Part), dialect.Key(c.Seq)
	}
	return e
}

// kept appends the messages of a hidden range that stay in view: those kept by the generation that hid it.
func (l *Ledger) kept(out []measure.Entry, s span) []measure.Entry {
	for _, m := range l.edits {
		if m.op != measure.OpKeep || int64(m.gen) != s.Gen || int(m.entry) < s.From || int(m.entry) >= s.To {
			continue
		}
		first := l.entries.at(int(m.entry))
		for i := int(m.entry); i < s.To && l.entries.at(i).SameMessage(first); i++ {
			out = append(out, *l.entries.at(i))
		}
	}
	return out
}

// restored lists the entries that a view shows again after a hidden range, in the order of their return. Only
// the last range of a lineage has any: each compaction decides again.
func (l *Ledger) restored(s span, in []bool) []measure.Entry {
	i := len(l.hidden) - 1
	for !in[l.hidden[i].Gen] {
		i--
	}
	if last := &l.hidden[i]; s.Gen != last.Gen || s.From != last.From || s.To != last.To {
		return nil
	}
	var out []measure.Entry
	for _, m := range l.edits {
		if m.op != measure.OpRestore || !in[m.gen] || int64(m.gen) < s.Gen {
			continue
		}
		at := int(m.entry)
		call := -1
		if x := l.entries.at(at); x.Kind == measure.KindResult {
			call = l.callOf(x, at)
		}
		e := l.again(at, call)
		e.Ceiling = m.units
		out = slices.DeleteFunc(out, func(x measure.Entry) bool { return x.Position() == e.Position() })
		if m.units > 0 {
			out = append(out, e)
		}
	}
	return out
}

// FileUsage is a ledger's record of one file. A ledger keeps no text, so it has the place of the path in the
// log.
type FileUsage struct {
	Reads, Changes int64
	First, Last    int64       // turns that use it
	Restorable     bool        // its latest read may be restored
	Seq            measure.Seq // of the turn that names it
	Index, Part    int         // of the part that names it, in that turn

	path dialect.Key
	last int // entry that uses it last
}

// Names reports whether a path names the file.
func (f *FileUsage) Names(path string) bool { return dialect.KeyOf(path) == f.path }

// Files lists the files that tool calls have read and changed, the last used first.
func (l *Ledger) Files(c *Config) []FileUsage {
	l.use(c)
	restorable := map[dialect.Key]bool{}
	if l.cache.policy.Restore.Enabled {
		for e := range l.restorable {
			restorable[e.Path] = true
		}
	}
	at, out := map[dialect.Key]int{}, []FileUsage{}
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
func (f *FileUsage) use(e *measure.Entry, i int) {
	if e.Kind == measure.KindCall && !e.Flags.Has(measure.FlagRead) {
		f.Changes++
	} else {
		f.Reads++
	}
	f.Last, f.Seq, f.Index, f.Part, f.last = int64(e.Turn), e.Seq, int(e.Index), int(e.Part), i
}
