package stage

import (
	"cmp"
	"math"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// The entry that is worth least for each of its tokens goes first: its worth is that of its kind,
// which the policy states, over its age. A result is cleared, and an exchange hidden behind a summary, in the order of
// their burdens, the inverse of that, until the history is at its target. An exchange is no
// greater burden than the least of its contents: an edit stays for long, and a large result goes
// before the call that it came from.
// See docs/adr/0042.

const (
	// youngest is added to an age: what came in the last few turns is about as young.
	youngest = 7
	// oldest bounds an age, and with it a burden.
	oldest = 100_000
	// burdenUnit keeps the quotient of an age and a worth in integers.
	burdenUnit = 1 << 20
)

// ages returns for each entry how many turns ago it came, or, where that is more, how many
// messages of the assistant follow it.
func (d *Draft) ages() []uint64 {
	d.aged = slices.Grow(d.aged[:0], len(d.entries))[:len(d.entries)]
	out := d.aged
	var last uint32
	for i := range d.entries {
		last = max(last, d.entries[i].Turn)
	}
	follow := uint64(0)
	for i := len(d.entries) - 1; i >= 0; i-- {
		e := &d.entries[i]
		out[i] = min(max(uint64(last-e.Turn), follow), oldest) + 1
		if e.Role == measure.RoleAssistant && e.Flags.Has(measure.FlagFirst) {
			follow++
		}
	}
	return out
}

// burden is what a token of an entry is to the history, of which it costs so many.
func (d *Draft) burden(i int, cost measure.Tokens, age uint64) uint64 {
	n := (age + youngest) * burdenUnit / uint64(d.keep.Worth(&d.entries[i]))
	if cost > d.keep.LargeTokens {
		n *= uint64(d.keep.LargeFactor)
	}
	return n
}

// removal is what may go: a result that is cleared, or an exchange that is hidden.
type removal struct {
	burden uint64
	at     int // the result, or any entry of the exchange
	saved  measure.Tokens
	hide   bool
}

// inOrder sorts removals, the greatest burden first.
func inOrder(list []removal) {
	slices.SortFunc(list, func(a, b removal) int {
		if a.burden != b.burden {
			return cmp.Compare(b.burden, a.burden)
		}
		return a.at - b.at
	})
}

// clearing appends the results of a list as removals.
func (d *Draft) clearing(out []removal, results []int, ages []uint64) []removal {
	for _, i := range results {
		s := d.clearable(i)
		out = append(out, removal{burden: d.burden(i, s, ages[i]), at: i, saved: s})
	}
	return out
}

// exchanged returns for each entry the first entry of what stays or goes with it: its message, and
// those that its calls and results belong to.
func (d *Draft) exchanged() []int32 {
	d.joined = slices.Grow(d.joined[:0], len(d.entries))[:len(d.entries)]
	of := d.joined
	find := func(i int32) int32 {
		for of[i] != i {
			of[i] = of[of[i]]
			i = of[i]
		}
		return i
	}
	join := func(a, b int) {
		x, y := find(int32(a)), find(int32(b))
		of[max(x, y)] = min(x, y)
	}
	other, before := d.pairing().Other, -1
	for i := range d.entries {
		of[i] = int32(i)
		e := &d.entries[i]
		if i > 0 && e.SameMessage(&d.entries[i-1]) || d.splitsUnit(before, i) {
			join(i, max(before, i-1))
		}
		if o := other[i]; o >= 0 && int(o) < i {
			join(i, int(o))
		}
		if !e.Flags.Has(measure.FlagEmpty) {
			before = i
		}
	}
	for i := range of {
		of[i] = find(int32(i))
	}
	return of
}

// exchange is a message of the assistant with the results of its calls, or another message.
type exchange struct {
	cost   measure.Tokens // as it is
	burden uint64         // of the least of its contents
	stays  bool           // whatever its burden
	goes   bool
}

// aim is the target of a choice, and the results that stay.
type aim struct {
	target  measure.Tokens
	protect measure.Tokens // of the newest results, which stay
	tools   []string       // whose results stay
}

// protectShare times the share that the policy aims for is the part of a target that the newest
// results may take whatever their burden: where the room is small, others are worth more than the
// last of them.
const protectShare measure.PPM = 400_000

// aimOf is the aim of a policy, nil where it does not choose.
func aimOf(p *policy.Policy, window, target measure.Tokens) *aim {
	if !p.Prune.Enabled || !p.Prune.ToTarget {
		return nil
	}
	protect := min(p.Prune.Scaled(p.Prune.ProtectTokens, window), protectShare.Share(p.Target.Share(max(target, 0))))
	return &aim{target, protect, p.Prune.ProtectedTools}
}

// reduce clears results until the history is at its target. Where that cannot reach it, it
// also hides what the summary in view has kept of its range; or else it leaves all to a
// summary that is ready, or clears all that it may.
func (d *Draft) reduce(p *policy.Policy, window measure.Tokens, m *Means) {
	minimum := p.Prune.Scaled(p.Prune.MinimumTokens, window)
	by := aimOf(p, window, m.Target)
	if by == nil {
		d.Prune(p.Prune.Scaled(p.Prune.ProtectTokens, window), minimum, p.Prune.ProtectedTools)
		return
	}
	results, saved := d.prunable(by.protect, by.tools) // as chooseAgain finds them, too
	if saved < d.Repaired()-m.Target {
		if d.saves(m.Summary) {
			return
		}
		by = aimOf(p, window, m.chosen())
		if d.chooseAgain(by) {
			d.restoreBeside(m, p.Restore)
			return
		}
	}
	d.prune(results, saved, minimum, m.Target)
}

// covering returns the summary in view, and where what it covers and has kept ends; ok is
// false where it has kept nothing.
func (d *Draft) covering() (s Summary, end int, ok bool) {
	from := d.AfterSystem()
	if from == len(d.entries) || d.entries[from].Kind != measure.KindSummary {
		return s, from, false
	}
	e := &d.entries[from]
	end = d.Through(from, e.End())
	return Summary{Seq: e.Seq, To: e.End(), Units: int64(e.Text), Kept: e.Spares()}, end, end > from+1
}

// chooseAgain chooses once more what stays of the range of the summary in view, and reports
// whether that brings the history to its target; else it changes nothing.
func (d *Draft) chooseAgain(by *aim) bool {
	s, end, ok := d.covering()
	if !ok {
		return false
	}
	from := d.AfterSystem()
	if !d.choose(from, end, by, d.costs[from], d.pins(from)).enough {
		return false
	}
	d.hiding(func() { d.condense(&s, by) })
	return true
}

// keepPins hides what the summary in view has kept, but for what is pinned.
func (d *Draft) keepPins() {
	if s, end, ok := d.covering(); ok && slices.ContainsFunc(d.entries[d.AfterSystem()+1:end], func(e measure.Entry) bool { return !pinned(e) }) {
		d.condense(&s, nil)
	}
}

// truncateBehind truncates. Where that takes from what the summary in view has kept, the
// summary keeps nothing, and what follows it is truncated: no range is inside of another.
func (d *Draft) truncateBehind(target measure.Tokens, fraction measure.PPM) {
	s, end, ok := d.covering()
	was := d.savepoint()
	d.Truncate(target, fraction)
	inside := func(e events.Edit) bool {
		return e.Op == events.OpTruncate && e.Compare(s.To) <= 0
	}
	if !ok || !slices.ContainsFunc(d.edits[len(was.edits):], inside) {
		return
	}
	d.rollback(was)
	n := len(d.edits)
	d.hide(d.AfterSystem(), end, s.entry(), nil)
	d.edits[n].To = &s.To
	d.Truncate(target, fraction)
}

// choice is what stays in view of a history.
type choice struct {
	keep    []bool         // entries behind the placeholder
	cleared []int          // results, oldest first
	last    int            // of them the least burden, -1 where an exchange is that
	spare   measure.Tokens // how much more fits
	enough  bool           // the history is at its target
}

// choose decides what of the entries from ≤ i < to stays behind a placeholder of so many
// tokens, and which results are cleared, so that the history is at its target. pins stay.
func (d *Draft) choose(from, to int, by *aim, placeholder measure.Tokens, pins []bool) choice {
	ages, of, target := d.ages(), d.exchanged(), by.target-placeholder
	results, _ := d.prunable(by.protect, by.tools)
	list := d.clearing(d.removals[:0], results, ages)
	d.exchanges = slices.Grow(d.exchanges[:0], len(d.entries))[:len(d.entries)]
	all := d.exchanges // by their first entries
	clear(all)
	for i := range d.entries {
		e, x := &d.entries[i], &all[of[i]]
		if x.cost == 0 {
			x.burden = math.MaxUint64
		}
		x.cost += d.costs[i]
		if d.costs[i] > 0 {
			x.burden = min(x.burden, d.burden(i, 0, ages[i]))
		}
		x.stays = x.stays || i < from || i >= to || pins != nil && pins[i]
		x.goes = x.goes || e.Kind >= measure.KindTruncation || e.Role == measure.RoleSystem || e.Seq < d.fresh
	}
	total := d.Repaired()
	for i := from; i < to; i++ {
		switch x := &all[i]; {
		case int(of[i]) != i || x.stays:
		case x.goes:
			total -= x.cost
		default:
			list = append(list, removal{burden: x.burden, at: i, hide: true})
		}
	}
	inOrder(list)
	d.removals = list
	c := choice{last: -1}
	for _, r := range list {
		if total <= target {
			break
		}
		x := &all[of[r.at]]
		switch {
		case r.hide:
			total -= x.cost
			x.goes, c.last = true, -1
		case x.stays || !x.goes:
			total, x.cost = total-r.saved, x.cost-r.saved
			c.cleared, c.last = append(c.cleared, r.at), r.at
		}
	}
	c.keep = make([]bool, len(d.entries))
	for i := from; i < to; i++ {
		x := &all[of[i]]
		c.keep[i] = x.stays || !x.goes
	}
	c.cleared = slices.DeleteFunc(c.cleared, func(i int) bool { return i >= from && i < to && !c.keep[i] })
	slices.Sort(c.cleared)
	c.spare, c.enough = target-total, total <= target
	return c
}

// clearChosen clears the results of a choice; of the last one a part stays.
func (d *Draft) clearChosen(c *choice) {
	if c.last >= 0 && d.clearInPart(c.last, c.spare) {
		c.cleared = slices.DeleteFunc(c.cleared, func(i int) bool { return i == c.last })
	}
	d.clear(c.cleared)
}
