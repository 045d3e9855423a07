package compaction

import (
	"errors"
	"fmt"
	"slices"

	"compactd/internal/events"
)

// RestorePolicy says which results come back after messages were hidden: what the
// agent read last, so that it need not read it again.
type RestorePolicy struct {
	Enabled bool `json:"enabled"`
	// At most Files files come back, each of at most FileTokens, of TotalTokens
	// together.
	Files       int64  `json:"files"`
	FileTokens  Tokens `json:"file_tokens"`
	TotalTokens Tokens `json:"total_tokens"`
	// Results of the tools that prune protects have limits of their own.
	SkillTokens       Tokens `json:"skill_tokens"`
	SkillsTotalTokens Tokens `json:"skills_total_tokens"`
}

// The figures are those of the third reference system.
func defaultRestore() RestorePolicy {
	return RestorePolicy{
		Enabled: true, Files: 5, FileTokens: 5_000, TotalTokens: 50_000, SkillTokens: 5_000, SkillsTotalTokens: 25_000,
	}
}

// maxRestored bounds the files that a policy may restore.
const maxRestored = 100

func (p RestorePolicy) validate() error {
	var errs []error
	if p.Files < 0 || p.Files > maxRestored {
		errs = append(errs, fmt.Errorf("restore.files must be between 0 and %d", maxRestored))
	}
	for _, t := range []struct {
		name string
		v    Tokens
	}{
		{"file_tokens", p.FileTokens},
		{"total_tokens", p.TotalTokens},
		{"skill_tokens", p.SkillTokens},
		{"skills_total_tokens", p.SkillsTotalTokens},
	} {
		if t.v < 0 || t.v > events.MaxTokens {
			errs = append(errs, fmt.Errorf("restore.%s must be between 0 and %d", t.name, int64(events.MaxTokens)))
		}
	}
	return errors.Join(errs...)
}

// restorable lists the results that may be restored, newest first: of each file
// its latest read, unless the file was changed after it, and what protected tools
// said. What was cleared before stays cleared.
func (l *Ledger) restorable() []Entry {
	least := max(l.entries.n-maxRestoreLookback, 0)
	written, seen := l.lastWrites(least), map[Key]bool{}
	protected, fresh := keysOf(l.cache.policy.Prune.ProtectedTools), l.fresh(2)
	var out []Entry
	for i := l.entries.n - 1; i >= least; i-- {
		e := l.entries.at(i)
		read := e.Flags.has(FlagRead)
		if e.Seq < fresh {
			break // its text leaves the log soon, and that of all before it
		}
		if e.Kind != KindResult || e.Flags&(FlagFailed|FlagEmpty) != 0 || !read && !slices.Contains(protected, e.Tool) {
			continue
		}
		call, stale := l.callOf(e, i), false
		if read {
			at := i
			if call >= 0 { // calls of one message run in their order, whenever their results come
				at = call
			}
			stale = seen[e.Path] || written[e.Path] > at
			seen[e.Path] = true
		}
		if !stale && e.whole() && e.Text > 0 {
			out = append(out, l.again(i, call))
		}
	}
	return out
}

// maxRestoreLookback is how many of the newest entries are searched for what may
// be restored: nothing older was read recently.
const maxRestoreLookback = 4_096

// written returns for each file the position of the last call that changes it.
func (l *Ledger) lastWrites(least int) map[Key]int {
	out := map[Key]int{}
	for i := least; i < l.entries.n; i++ {
		if e := l.entries.at(i); e.Kind == KindCall && e.Path != 0 && !e.Flags.has(FlagRead) {
			out[e.Path] = i
		}
	}
	return out
}

// keysOf returns the keys of names.
func keysOf(names []string) []Key {
	out := make([]Key, len(names))
	for i, n := range names {
		out[i] = KeyOf(n)
	}
	return out
}

// again is the entry in a view that shows a result again. Its ceiling is the whole
// text, and what stands before it.
func (l *Ledger) again(at, call int) Entry {
	e := *l.entries.at(at)
	e.Kind, e.Role, e.Flags, e.Op, e.Images = KindRestored, RoleUser, FlagFirst|e.Flags&FlagRead, opTrim, 0
	e.Ceiling = e.Text + restoreNotice + uint32(e.PathUnits)
	e.Call, e.Variant = 0, 0
	if call >= 0 {
		c := l.entries.at(call)
		e.Call, e.Variant = Key(c.Index)<<32|Key(c.Part), Key(c.Seq)
	}
	return e
}

// callSeq is the sequence of the turn that holds the call of a restored result, 0
// if it has none.
func (e *Entry) callSeq() Seq { return Seq(e.Variant) }

// restored lists what a view shows behind a hidden range, in the order it came
// back. Only the range that a lineage hid last has any: each decides anew.
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
		if m.op != opRestore || !in[m.gen] || int64(m.gen) < s.gen {
			continue
		}
		at := int(m.entry)
		e := l.again(at, l.callOf(l.entries.at(at), at))
		e.Ceiling = m.units
		out = slices.DeleteFunc(out, func(x Entry) bool { return x.position() == e.position() })
		if m.units > 0 {
			out = append(out, e)
		}
	}
	return out
}
