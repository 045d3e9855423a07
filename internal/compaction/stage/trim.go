package stage

import (
	"sort"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

const (
	// leastTrim is the size below which no content is cut: less is of no use.
	leastTrim = measure.NoticeFrom

	// leastWords is that size in a history of four messages or less that fits in no other way: a piece of a
	// content is better than a call that cannot be made.
	leastWords = 8

	// worthMoreFactor is the factor by which valuable contents may stay larger than others: the first and the
	// last words of the user, the last ones of the agent, and contents that the agent has not read yet. A
	// strict order would cut all others to nothing for one content that may itself be too large.
	worthMoreFactor = 4
)

// trim cuts the content of an entry.
func (d *Draft) trim(i int, x events.Edit) {
	x.Op = events.OpTrim
	d.change(i, x)
}

// content is an entry whose text may be cut. Its ceiling is a share of weight, but at least least.
type content struct {
	at            int
	weight, least int64
}

func (c content) ceiling(share measure.PPM) int64 {
	return max(c.weight*int64(share)/measure.Million, c.least)
}

// Trim cuts contents until the history is at most target tokens, and no further: the largest to one common
// size, valuable ones to a multiple of it. In a history of four messages or less all shrink in proportion,
// since each is a large part of the conversation. No content is cut below leastTrim units; in such a history
// below leastWords, if the target needs it. If that does not reach the target, the target becomes the middle
// between enough and the least reachable size, or that size if it is above enough. Calls with results have
// their arguments cut. Calls that await results, the words beside them, reasoning, images, summaries and
// words of the system stay.
func (d *Draft) Trim(target, enough measure.Tokens) {
	contents := d.contents(leastTrim)
	total := d.Repaired()
	if d.Messages() <= MinMessages && total-d.cuttingAll(contents, 0) > target {
		if further := d.contents(leastWords); total-d.cuttingAll(further, 0) <= target {
			contents = further
		}
	}
	if least := total - d.cuttingAll(contents, 0); least > target {
		target = max(least, (least+enough)/2)
	}
	share := measure.PPM(sort.Search(measure.Million+1, func(n int) bool { return total-d.cuttingAll(contents, measure.PPM(n)) > target }) - 1)
	for _, c := range contents {
		if d.cutting(c, share) > 0 {
			d.trim(c.at, events.Edit{Units: c.ceiling(share)})
		}
	}
}

// cuttingAll is the saving of cutting all contents to their ceilings.
func (d *Draft) cuttingAll(contents []content, share measure.PPM) (sum measure.Tokens) {
	for _, c := range contents {
		sum += d.cutting(c, share)
	}
	return sum
}

// cutting is the saving of cutting a content to its ceiling.
func (d *Draft) cutting(c content, share measure.PPM) measure.Tokens {
	e := &d.entries[c.at]
	n := c.ceiling(share)
	if n >= e.Size() {
		return 0
	}
	x := e.TrimTo(n)
	return max(d.costs[c.at]-d.rate.Entry(&x), 0)
}

// contents lists the contents that Trim may cut, each down to least units.
func (d *Draft) contents(least int64) []content {
	var out []content
	var largest int64
	awaiting, other := d.awaitingResults(), d.pairing().Other
	for i := range d.entries {
		e := &d.entries[i]
		if !e.Cuttable() || pinned(*e) || e.Size() <= least || e.Kind == measure.KindCall && e.Size() <= leastTrim || d.inUnit(e) {
			continue
		}
		if i >= awaiting && e.Role == measure.RoleAssistant && (e.Kind != measure.KindCall || other[i] < 0) {
			continue
		}
		c := content{i, e.Size(), least}
		if e.Kind == measure.KindCall { // arguments stay JSON
			c.least = leastTrim
		}
		out = append(out, c)
		largest = max(largest, e.Size())
	}
	if d.Messages() <= MinMessages {
		return out
	}
	worthMore := d.worthMore()
	for i := range out {
		if out[i].weight = largest; worthMore(out[i].at) {
			out[i].weight *= worthMoreFactor
		}
	}
	return out
}

// awaitingResults is the beginning of the exchange whose calls are open, the end without any: an answer
// without calls awaits nothing, and is cut like any words.
func (d *Draft) awaitingResults() int {
	from, other := d.awaiting(), d.pairing().Other
	for i := from; i < len(d.entries); i++ {
		if d.entries[i].Kind == measure.KindCall && other[i] < 0 {
			return from
		}
	}
	return len(d.entries)
}

// worthMore returns whether a content is worth more than others.
func (d *Draft) worthMore() func(i int) bool {
	first, last, answer, unread := -1, -1, -1, 0
	for i := range d.entries {
		switch e := &d.entries[i]; {
		case e.Role == measure.RoleAssistant:
			unread = i + 1
			if e.Kind == measure.KindWords && !e.IsMedia() && e.Call == 0 {
				answer = i
			}
		case e.Kind == measure.KindWords && !e.IsMedia() && e.Role == measure.RoleUser && !e.Flags.Has(measure.FlagEmpty):
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return func(i int) bool { return i == first || i == last || i == answer || i >= unread }
}

// finishTruncate ends the last stage: restored entries are dropped before contents are cut, and contents are
// cut only while the history is over Enough.
func (d *Draft) finishTruncate(m *Means, p *policy.Prune) {
	target, enough := m.bounds(d)
	if d.Repaired() > enough {
		d.release(target)
	}
	if d.Repaired() > enough {
		d.ReduceMedia(target, p)
	}
	if d.Repaired() > enough {
		d.Trim(target, enough)
	}
}
