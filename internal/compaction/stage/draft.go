package stage

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Draft is an effective history under the stages: entries in view, and what the
// edits so far made of them. Each stage can be run alone.
type Draft struct {
	entries []measure.Entry // changed by set and put alone
	format  events.Format
	rate    measure.Rate
	edits   []events.Edit

	// What follows from entries, so that a stage costs what it changes.
	costs    []measure.Tokens // of each
	tokens   measure.Tokens   // of all
	pointers int              // placeholders that refer to a later read
	pairs    *Pairing         // nil until it is needed

	changes []change // since the last savepoint, in order
}

// change is an entry that put replaced. It names its place by address: a stage that
// hides messages goes on with other entries, and what is put there later is no
// change of the marked ones.
type change struct {
	at  *measure.Entry
	was measure.Entry
}

// NewDraft takes over entries.
func NewDraft(entries []measure.Entry, f events.Format, r measure.Rate) *Draft {
	d := &Draft{format: f, rate: r}
	d.set(entries)
	return d
}

// set makes the draft hold other entries.
func (d *Draft) set(entries []measure.Entry) {
	d.entries, d.costs = entries, make([]measure.Tokens, len(entries))
	d.tokens, d.pointers, d.pairs = 0, 0, nil
	for i := range entries {
		d.costs[i] = d.rate.Entry(&entries[i])
		d.tokens += d.costs[i]
		if entries[i].Op == measure.OpDeduplicate {
			d.pointers++
		}
	}
}

// put replaces an entry by one that pairs as it does.
func (d *Draft) put(i int, e measure.Entry) {
	was := &d.entries[i]
	d.changes = append(d.changes, change{was, *was})
	if was.Op == measure.OpDeduplicate {
		d.pointers--
	}
	if e.Op == measure.OpDeduplicate {
		d.pointers++
	}
	d.tokens -= d.costs[i]
	d.costs[i] = d.rate.Entry(&e)
	d.tokens += d.costs[i]
	*was = e
}

// savepoint returns the draft as it is, for rollback.
func (d *Draft) savepoint() Draft {
	d.changes = d.changes[:0]
	return *d
}

// rollback makes the draft what it was at the last savepoint.
func (d *Draft) rollback(was Draft) {
	if len(d.edits) == len(was.edits) {
		return
	}
	for _, c := range slices.Backward(d.changes) {
		*c.at = c.was
	}
	*d = was
	d.set(d.entries)
}

// Tokens estimates the history as it is, without the framing of a conversation.
func (d *Draft) Tokens() measure.Tokens { return d.tokens }

// Entries lists the entries in view, not to be changed.
func (d *Draft) Entries() []measure.Entry { return d.entries }

// Edits lists the edits so far, not to be changed.
func (d *Draft) Edits() []events.Edit { return d.edits }

// TokensFrom estimates the entries from position i on as a history of their own.
func (d *Draft) TokensFrom(i int) measure.Tokens {
	return NewDraft(d.entries[i:], d.format, d.rate).Tokens()
}

// pairing returns what belongs together.
func (d *Draft) pairing() *Pairing {
	if d.pairs == nil {
		d.pairs = Pair(d.entries, d.format)
	}
	return d.pairs
}

// Messages counts the messages in view, truncation notices included.
func (d *Draft) Messages() int { return messagesOf(d.entries) }

func messagesOf(entries []measure.Entry) int {
	n := 0
	for i := range entries {
		if entries[i].Flags.Has(measure.FlagFirst) {
			n++
		}
	}
	return n
}

// edit sets the op of entries and notes it.
func (d *Draft) edit(o events.Op, at []int) {
	d.edits, d.changes = slices.Grow(d.edits, len(at)), slices.Grow(d.changes, len(at))
	for _, i := range at {
		d.change(i, events.Edit{Op: o, Units: d.rate.PlaceholderUnits(o)})
	}
}

// change puts an edit in force on entry i and notes it.
func (d *Draft) change(i int, x events.Edit) {
	e := d.entries[i]
	x.Position = e.Position()
	e.Set(&x)
	d.put(i, e)
	d.edits = append(d.edits, x)
}

// note adds an edit of an entry to those of the plan.
func (d *Draft) note(o events.Op, i int) {
	d.edits = append(d.edits, events.Edit{Op: o, Position: d.entries[i].Position()})
}

// saving is what a placeholder would save on an entry; it can be negative.
func (d *Draft) saving(i int, o events.Op) measure.Tokens {
	e := d.entries[i]
	e.Set(&events.Edit{Op: o, Units: d.rate.PlaceholderUnits(o)})
	return d.costs[i] - d.rate.Entry(&e)
}
