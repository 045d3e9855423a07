package stage

import (
	"math"
	"slices"
	"sort"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// Prune clears the contents of old tool results. Results stay whole, from the newest on, until protect tokens
// of them are kept, the one that crosses the bound included. Results after the last assistant message, which
// the agent has not read yet, results of protected tools, and a read that another's placeholder points to
// also stay. Calls of the provider's own tools are cleared with their results, except in the newest exchange.
// Prune changes nothing if it would save less than minimum.
func (d *Draft) Prune(protect, minimum measure.Tokens, protectedTools []string) {
	results, saved := d.prunable(protect, protectedTools)
	d.prune(results, saved, minimum, everything)
}

// prune clears prunable results, the greatest burdens first, until the history is at its target. It clears
// none if all of them save less than minimum.
func (d *Draft) prune(results []int, saved, minimum, target measure.Tokens) {
	if saved < minimum {
		return
	}
	if target == everything || saved <= d.Repaired()-target {
		d.clear(results)
		return
	}
	d.removals = d.clearing(d.removals[:0], results, d.ages())
	removals := d.removals
	inOrder(removals)
	for over := d.Repaired() - target; over > 0 && len(removals) > 0; over = d.Repaired() - target {
		d.list = d.list[:0]
		for ; over > 0 && len(removals) > 0; removals = removals[1:] {
			over -= removals[0].saved
			d.list = append(d.list, removals[0].at)
		}
		if last := len(d.list) - 1; over < 0 && d.clearInPart(d.list[last], -over) {
			d.list = d.list[:last]
		}
		slices.Sort(d.list)
		d.clear(d.list) // a repair may have cost what one of them saves
	}
}

// leastPart is the smallest part of a result that is worth keeping, in tokens.
const leastPart measure.Tokens = 200

// clearInPart cuts a clearable result so that spare tokens of its saving stay, and reports whether it did; a
// small part is not worth it.
func (d *Draft) clearInPart(i int, spare measure.Tokens) bool {
	e := &d.entries[i]
	if _, head := d.headOf(i); spare < leastPart || head || !e.Cuttable() || d.inUnit(e) {
		return false
	}
	most := d.costs[i] - d.clearable(i) + spare
	fits := func(units int) bool {
		x := e.TrimTo(int64(units))
		return d.rate.Entry(&x) <= most
	}
	n := sort.Search(int(e.Size()), func(n int) bool { return !fits(n) }) - 1
	if n < leastTrim {
		return false
	}
	d.trim(i, events.Edit{Units: int64(n)})
	return true
}

// failureUnits is the size of the first line that a cleared failure keeps.
const failureUnits = 160

// headOf returns the edit that leaves the first line of a failure; ok is false if it is cleared like any
// other result.
func (d *Draft) headOf(i int) (x events.Edit, ok bool) {
	e := &d.entries[i]
	if !d.heads || !e.Flags.Has(measure.FlagFailed) || !e.Cuttable() {
		return x, false
	}
	return events.Edit{Units: failureUnits + measure.LimitNotice, Direction: string(measure.KeepHead), Lines: 1}, true
}

// clearable is the saving of clearing a result.
func (d *Draft) clearable(i int) measure.Tokens {
	x, ok := d.headOf(i)
	if !ok {
		return d.saving(i, events.OpClear)
	}
	e := d.entries[i]
	if e.Size() <= x.Units {
		return 0
	}
	x.Op = events.OpTrim
	e.Set(&x)
	return d.costs[i] - d.rate.Entry(&e)
}

// clear clears results. Failures keep their first line: it is short, and a later summary cannot have it
// otherwise.
func (d *Draft) clear(results []int) {
	d.edits, d.changes = slices.Grow(d.edits, len(results)), slices.Grow(d.changes, len(results))
	for _, i := range results {
		if x, ok := d.headOf(i); ok {
			d.trim(i, x)
		} else {
			d.change(i, events.Edit{Op: events.OpClear, Units: d.rate.PlaceholderUnits(events.OpClear)})
		}
	}
}

// everything is a target that clears all.
const everything measure.Tokens = math.MinInt64

// prunable lists the results that Prune may clear, oldest first, and their saving.
func (d *Draft) prunable(protect measure.Tokens, protectedTools []string) (results []int, saved measure.Tokens) {
	protected := measure.KeysOf(protectedTools)
	referred, newest := d.referred(), d.newestExchange()
	d.list = d.list[:0]
	var kept measure.Tokens
	unread := d.unread()
	for i := len(d.entries) - 1; i >= 0; i-- {
		e := &d.entries[i]
		if !e.Clearable() || pinned(*e) || e.Of(protected) || referred[i] {
			continue
		}
		if i >= unread || kept < protect || e.Hosted() && i >= newest {
			kept += d.rate.Body(e)
			continue
		}
		if s := d.clearable(i); s > 0 {
			d.list = append(d.list, i)
			saved += s
		}
	}
	slices.Reverse(d.list)
	return d.list, saved
}

// Limit cuts results above the limits of a tool's output to their bytes and lines. If the lines are too many,
// the bytes of as many lines as the limit allows stay, at the mean length of the result's lines: the lengths
// of single lines are not measured. Results with images stay; unless unread is set, so do those that the
// agent has not answered yet. It reports whether it cut any.
func (d *Draft) Limit(p *policy.ToolOutput, unread bool) bool {
	end := len(d.entries)
	if !unread {
		end = d.unread()
	}
	was := len(d.edits)
	for i := range end {
		if e := &d.entries[i]; !pinned(*e) && p.Exceeds(e) {
			d.trim(i, p.Cut(e))
		}
	}
	return len(d.edits) > was
}

// ClearOld clears the results of the policy's tools outside the newest messages, and reports whether there
// were any. Results that the agent has not answered yet stay, and so does a read that another's placeholder
// points to.
func (d *Draft) ClearOld(p *policy.Micro) bool {
	if !p.Enabled || int64(d.Messages()) < p.FromMessages {
		return false
	}
	newest := d.Newest(int(p.KeepMessages))
	old := d.results(p.Tools)
	return d.clearEach(slices.DeleteFunc(old, func(i int) bool { return i >= newest }))
}

// ClearIdle clears the results of the policy's tools except the newest few, and reports whether there were
// any. It is for a session whose cache is cold. Results that [Draft.ClearOld] never clears stay here too.
func (d *Draft) ClearIdle(p *policy.Micro) bool {
	if !p.Enabled || p.IdleMinutes == 0 {
		return false
	}
	old := d.results(p.Tools)
	return d.clearEach(old[:max(int64(len(old))-p.IdleKeep, 0)])
}

// results lists the results of tools that still have their content, oldest first.
func (d *Draft) results(tools []string) []int {
	var out []int
	keys := measure.KeysOf(tools)
	for i := range d.entries {
		if e := &d.entries[i]; e.Clearable() && !pinned(*e) && e.Of(keys) {
			out = append(out, i)
		}
	}
	return out
}

// clearEach clears results, except those that must stay and those whose
// placeholder would cost as much.
func (d *Draft) clearEach(results []int) (cleared bool) {
	referred, newest, unread := d.referred(), d.newestExchange(), d.unread()
	results = slices.DeleteFunc(results, func(i int) bool {
		return i >= unread || referred[i] || d.entries[i].Hosted() && i >= newest || d.saving(i, events.OpClearOld) <= 0
	})
	d.edit(events.OpClearOld, results)
	return len(results) > 0
}
