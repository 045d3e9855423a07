package stage

import (
	"cmp"
	"math"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// Entries with the least worth for each of their tokens go first: the worth of their kind, which the policy
// states, over their age. The inverse is their burden. Results are cleared, and exchanges hidden behind a
// summary, in the order of their burdens until the history is at its target. The burden of an exchange is the
// least of its contents': an edit keeps it in view for long, and a large result is cleared before its call is
// hidden.
// See docs/adr/0042.

const (
	// youngest is added to an age: entries of the last few turns are about as young.
	youngest = 7
	// oldest bounds an age, and with it a burden.
	oldest = 100_000
	// burdenUnit keeps the quotient of an age and a worth in integers.
	burdenUnit = 1 << 20
)

// ages returns the age of each entry: the number of turns since it, or of messages of the assistant after it
// if that is more.
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

// burden is the burden of a token of an entry that costs so many.
func (d *Draft) burden(i int, cost measure.Tokens, age uint64) uint64 {
	n := (age + youngest) * burdenUnit / uint64(d.keep.Worth(&d.entries[i]))
	if cost > d.keep.LargeTokens {
		n *= uint64(d.keep.LargeFactor)
	}
	return n
}

// removal is a result to clear, or an exchange to hide.
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

// exchanged returns for each entry the first entry of its exchange, which stays or goes as a whole: its
// message, and those with its calls and results.
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
	cost   measure.Tokens // before any edit
	burden uint64         // of the least of its contents
	stays  bool           // whatever its burden
	goes   bool
}

// aim is the target of a choice, and the results that must stay.
type aim struct {
	target  measure.Tokens
	protect measure.Tokens // of the newest results, which stay
	tools   []string       // whose results stay
}

// protectShare times the policy's target share is the part of a target that the newest results may take
// whatever their burden: in a small room other content is worth more than the last of them.
const protectShare measure.PPM = 400_000

// aimOf is the aim of a policy, nil if the policy does not choose.
func aimOf(p *policy.Policy, window, target measure.Tokens) *aim {
	if !p.Prune.Enabled || !p.Prune.ToTarget {
		return nil
	}
	protect := min(p.Prune.Scaled(p.Prune.ProtectTokens, window), protectShare.Share(p.Target.Share(max(target, 0))))
	return &aim{target, protect, p.Prune.ProtectedTools}
}

// reduce clears results until the history is at its target. If all of them do not suffice, it leaves the work
// to a summary that is ready; else it chooses again among the entries kept by the summary in view; else it
// clears all that it may.
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

// covering returns the summary in view, and the end of its range with the entries it kept; ok is false if it
// kept nothing.
func (d *Draft) covering() (s Summary, end int, ok bool) {
	from := d.AfterSystem()
	if from == len(d.entries) || d.entries[from].Kind != measure.KindSummary {
		return s, from, false
	}
	e := &d.entries[from]
	end = d.Through(from, e.End())
	return Summary{Seq: e.Seq, To: e.End(), Units: int64(e.Text), Kept: e.Spares()}, end, end > from+1
}

// chooseAgain chooses the kept entries of the summary in view again, and reports whether that brings the
// history to its target; else it changes nothing.
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

// keepPins hides the entries that the summary in view kept, except pinned ones.
func (d *Draft) keepPins() {
	if s, end, ok := d.covering(); ok && slices.ContainsFunc(d.entries[d.AfterSystem()+1:end], func(e measure.Entry) bool { return !pinned(e) }) {
		d.condense(&s, nil)
	}
}

// truncateBehind truncates. If that hides entries kept by the summary in view, the summary keeps nothing and
// the truncation begins after its range: no range is inside another.
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

// choice is a choice of entries that stay in view.
type choice struct {
	keep    []bool         // entries behind the placeholder
	cleared []int          // results, oldest first
	last    int            // the cleared result with the least burden, -1 if an exchange has less
	spare   measure.Tokens // tokens that still fit
	enough  bool           // the history is at its target
}

// choose decides which entries from ≤ i < to stay behind a placeholder of so many tokens, and which results
// are cleared, so that the history is at its target. pins stay.
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
