package compaction

import (
	"slices"

	"compactd/internal/compaction/measure"
)

// restorable walks over the results that may be restored, newest first: of each file
// its latest read, unless the file was changed after it, and the results of protected
// tools. What was cleared before stays cleared.
func (l *Ledger) restorable(yield func(Entry) bool) {
	least := max(l.entries.n-maxRestoreLookback, 0)
	stale := make(map[measure.Key]bool, 128) // files that were read or changed later
	protected, fresh := measure.KeysOf(l.cache.policy.Prune.ProtectedTools), l.fresh(2)
	for i := l.entries.n - 1; i >= least; i-- {
		e := l.entries.at(i)
		read := e.Flags.Has(measure.FlagRead)
		if e.Seq < fresh {
			return // its text leaves the log soon, and that of all before it
		}
		if writes(e) {
			stale[e.Path] = true
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
		if !e.Whole() || e.Text == 0 {
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

// again is the entry in a view that shows a result again. Its ceiling is the whole
// text, and its head.
func (l *Ledger) again(at, call int) Entry {
	e := *l.entries.at(at)
	e.Kind, e.Role, e.Flags, e.Op, e.Images = measure.KindRestored, measure.RoleUser, measure.FlagFirst|e.Flags&measure.FlagRead, measure.OpTrim, 0
	e.Ceiling = e.Text + measure.RestoreNotice + uint32(e.PathUnits)
	e.Call, e.Variant = 0, 0
	if call >= 0 {
		c := l.entries.at(call)
		e.Call, e.Variant = measure.Key(c.Index)<<32|measure.Key(c.Part), measure.Key(c.Seq)
	}
	return e
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
		e := l.again(at, l.callOf(l.entries.at(at), at))
		e.Ceiling = m.units
		out = slices.DeleteFunc(out, func(x Entry) bool { return x.Position() == e.Position() })
		if m.units > 0 {
			out = append(out, e)
		}
	}
	return out
}
