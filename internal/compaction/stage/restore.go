package stage

import (
	"iter"
	"slices"
	"sort"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// hides reports whether an edit hides messages.
func hides(x events.Edit) bool { return x.Op == events.OpTruncate || x.Op == events.OpCondense }

// hiding runs a step that may hide messages, without the restored entries. They are dropped if it hides any,
// else they stay.
func (d *Draft) hiding(run func()) {
	was, edits := d.entries, len(d.edits)
	d.DropRestored()
	if run(); len(d.entries) != len(was) && !slices.ContainsFunc(d.edits[edits:], hides) {
		d.set(was)
	}
}

// DropRestored removes the restored entries from view.
func (d *Draft) DropRestored() {
	if d.restored > 0 {
		d.set(slices.DeleteFunc(slices.Clone(d.entries), func(e measure.Entry) bool { return e.Kind == measure.KindRestored }))
	}
}

// release drops restored entries, oldest first, until the history is at most target tokens: all other entries
// are originals, and worth more than a copy.
func (d *Draft) release(target measure.Tokens) {
	if d.restored == 0 {
		return
	}
	over := d.Repaired() - target
	d.set(slices.DeleteFunc(slices.Clone(d.entries), func(e measure.Entry) bool {
		if e.Kind != measure.KindRestored || over <= 0 {
			return false
		}
		over -= d.rate.Entry(&e)
		d.edits = append(d.edits, events.Edit{Op: events.OpRestore, Position: e.Position()})
		return true
	}))
}

// restore restores what the policy allows, if the plan has hidden messages.
func (d *Draft) restore(m *Means, p *policy.Restore) {
	if p.Enabled && m.Hidden != nil && d.lastPlaceholder() >= 0 {
		most := min(d.before-1, m.WholeEnough) // the history must not get larger
		skills := max(m.Whole, m.Skills, (d.Repaired()+m.Enough)/2)
		d.Restore(m.Hidden, p, min(skills, most), min(m.Whole, most))
	}
}

// filesShare is the share of a history for restored files beside a choice of kept entries, which are newer.
const filesShare measure.PPM = 50_000

// restoreBeside is restore after a choice.
func (d *Draft) restoreBeside(m *Means, p policy.Restore) {
	p.TotalTokens = min(p.TotalTokens, filesShare.Share(max(m.Whole, 0)))
	d.restore(m, &p)
}

// Restore shows contents of hidden messages again after the placeholder that hides them, as words of the
// user: texts of skills and results of protected tools, then files, since an agent can read a file again, but
// not a skill. Each kind is restored newest first, up to its limit and while the history stays within skills
// or files tokens. An entry that is in view, or was cleared, is not restored. Files that the agent used since
// come first: the draft counts how many of them were hidden, and how many were restored.
func (d *Draft) Restore(all iter.Seq[measure.Entry], p *policy.Restore, skills, files measure.Tokens) {
	placeholder := d.lastPlaceholder()
	if placeholder < 0 {
		return
	}
	has := d.Repaired()
	var texts, used, reads []measure.Entry
	inUse := d.inUse(placeholder)
	for e := range all {
		switch {
		case !e.Flags.Has(measure.FlagRead):
			texts = append(texts, e)
		case inUse[e.Path]:
			used = append(used, e)
		default:
			reads = append(reads, e)
		}
	}
	out, _ := d.candidates(texts, &share{each: p.SkillTokens, left: p.SkillsTotalTokens, count: policy.MaxRestored}, skills-has)
	for i := range out {
		has += d.rate.Entry(&out[i])
	}
	of := share{each: p.FileTokens, left: p.TotalTokens, count: p.Files}
	back, missing := d.candidates(used, &of, files-has)
	for i := range back {
		has += d.rate.Entry(&back[i])
	}
	d.missing, d.returned = missing, len(back)
	more, _ := d.candidates(reads, &of, files-has)
	out = slices.Concat(out, back, more)
	if len(out) == 0 {
		return
	}
	slices.SortFunc(out, func(a, b measure.Entry) int { return a.Compare(b.Position()) })
	d.set(slices.Concat(d.entries[:placeholder+1], out, d.entries[placeholder+1:]))
	for i := range out {
		d.edits = append(d.edits, events.Edit{Op: events.OpRestore, Position: out[i].Position(), Units: int64(out[i].Ceiling)})
	}
}

// inUse are the files named by calls after a placeholder: the agent works on them, and may not have read them
// since.
func (d *Draft) inUse(placeholder int) map[dialect.Key]bool {
	out := map[dialect.Key]bool{}
	end := d.entries[placeholder].End()
	for i := placeholder + 1; i < len(d.entries); i++ {
		if e := &d.entries[i]; e.Kind == measure.KindCall && e.Path != 0 && measure.MessageOf(e.Position()).Compare(end) > 0 {
			out[e.Path] = true
		}
	}
	return out
}

// candidates lists the entries of one kind to restore, newest first, within its share and left tokens, and
// counts those not in view.
func (d *Draft) candidates(all []measure.Entry, from *share, left measure.Tokens) (out []measure.Entry, missing int) {
	at := len(d.entries) - 1 // the next candidates are all before it
	for _, e := range all {
		place := e.Position()
		for at >= 0 && (d.entries[at].Kind >= measure.KindTruncation || d.entries[at].Compare(place) > 0) {
			at--
		}
		inView := at >= 0 && d.entries[at].Compare(place) == 0 && (d.entries[at].Kind == measure.KindResult || d.entries[at].Kind == measure.KindWords)
		if inView || d.cleared(place) {
			continue
		}
		missing++
		if from.count == 0 || left < d.leastRestored() {
			continue
		}
		if cost, ok := from.take(d.rate, &e, left); ok {
			from.count, from.left, left = from.count-1, from.left-cost, left-cost
			out = append(out, e)
		}
	}
	return out, missing
}

// leastRestored is a lower bound of the cost of a restored entry.
func (d *Draft) leastRestored() measure.Tokens {
	return d.rate.Entry(&measure.Entry{Kind: measure.KindRestored, Flags: measure.FlagFirst, Op: measure.OpTrim, Ceiling: measure.RestoreNotice})
}

// share is the rest of the limit for one kind.
type share struct {
	each, left measure.Tokens
	count      int64
}

// take cuts an entry to its limit, and returns the cost. ok is false if there is no room for it.
func (s *share) take(r measure.Rate, e *measure.Entry, room measure.Tokens) (cost measure.Tokens, ok bool) {
	whole, least := int(e.Ceiling), measure.RestoreNotice+leastTrim+int(e.PathUnits)
	n := sort.Search(whole, func(n int) bool {
		e.Ceiling = uint32(n + 1)
		return r.Entry(e) > s.each
	})
	e.Ceiling = uint32(n)
	cost = r.Entry(e)
	return cost, n >= min(least, whole) && cost <= min(s.left, room)
}

// lastPlaceholder returns the position of the placeholder of the last hidden range, −1 without any.
func (d *Draft) lastPlaceholder() int {
	for _, x := range slices.Backward(d.edits) {
		if hides(x) {
			for i := range d.entries {
				if e := &d.entries[i]; (e.Kind == measure.KindTruncation || e.Kind == measure.KindSummary) && e.Position() == x.Position {
					return i
				}
			}
			return -1
		}
	}
	return -1
}

// cleared reports whether this plan cleared a result before it was hidden.
func (d *Draft) cleared(place events.Position) bool {
	for _, list := range d.gone {
		i := sort.Search(len(list), func(i int) bool { return list[i].Compare(place) >= 0 })
		if i < len(list) && list[i].Compare(place) == 0 {
			return list[i].Kind == measure.KindResult && !list[i].Whole()
		}
	}
	return false
}
