package stage

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
)

// Draft is an effective history under the stages: entries in view, and what the
// edits so far made of them. Each stage can be run alone.
type Draft struct {
	entries []measure.Entry // changed by set and alter alone
	format  events.Format
	rate    measure.Rate
	edits   []events.Edit

	// Sums over entries, so that a stage costs only its changes.
	costs    []measure.Tokens // of each
	tokens   measure.Tokens   // of all
	messages int
	pointers int // placeholders that refer to a later read
	restored int // results that are shown again
	pinned   bool
	held     int64 // the last turn of those that stay as they are, 0 for none; see [Draft.Hold]
	pairs    Pairing
	paired   bool           // pairs are those of entries
	repaired measure.Tokens // of all, once repaired
	known    bool           // repaired is that of entries
	lost     []int          // placeholders that are disowned
	searched bool           // lost are those of entries

	fresh measure.Seq // what is from before is not kept in view
	heads bool        // a failure that is cleared keeps its first line
	keep  policy.Keep // by which it chooses

	gone [][]measure.Entry // what was hidden, as it was then

	changes []changed // since the last savepoint, in order

	before measure.Tokens // what a plan, or its step, began with

	missing, returned   int // files in use that a step took out of view, and those it restored
	missingLines, keeps int // the same of lines, and those it keeps

	// Memory that is used again.
	room  []measure.Entry     // where a plan begins
	whole map[measure.Key]int // reads of whole files, by their position from 1
	lines map[read]int        // the same of lines
	list  []int               // of what a stage edits

	aged      []uint64 // see ages
	joined    []int32  // see exchanged
	exchanges []exchange
	removals  []removal
}

// changed is an entry as alter found it. It names its place by address: a stage that
// hides messages goes on with other entries, and what is altered there later is no
// change of the marked ones.
type changed struct {
	at      *measure.Entry
	ceiling uint32
	lines   uint16
	flags   measure.Flags
	op      measure.Op
}

// Hold has the messages up to a turn stay as they are; none of them is edited or hidden.
func (d *Draft) Hold(through int64) {
	d.held = through
	for i := range d.entries[:d.holds()] {
		d.entries[i].Flags |= measure.FlagPinned
		d.pinned = true
	}
}

// holds counts the entries that are held.
func (d *Draft) holds() (n int) {
	for n < len(d.entries) && d.held > 0 && d.entries[n].Kind < measure.KindTruncation && d.entries[n].End().Turn <= d.held {
		n++
	}
	return n
}

// NewDraft takes over entries.
func NewDraft(entries []measure.Entry, f events.Format, r measure.Rate) *Draft {
	d := &Draft{format: f, rate: r}
	d.set(entries)
	return d
}

// set makes the draft hold other entries.
func (d *Draft) set(entries []measure.Entry) {
	d.entries, d.costs = entries, slices.Grow(d.costs[:0], len(entries))[:len(entries)]
	d.tokens, d.messages, d.pointers, d.restored, d.pinned, d.paired, d.known, d.searched = 0, 0, 0, 0, false, false, false, false
	for i := range entries {
		e := &entries[i]
		t := d.rate.Entry(e)
		d.costs[i] = t
		d.tokens += t
		if e.Flags.Has(measure.FlagFirst) {
			d.messages++
		}
		if e.Op == measure.OpDeduplicate {
			d.pointers++
		}
		if e.Kind == measure.KindRestored {
			d.restored++
		}
		d.pinned = d.pinned || e.Flags.Has(measure.FlagPinned)
	}
}

// alter changes the edit or the flags of an entry, which still pairs as it does.
func (d *Draft) alter(i int, change func(*measure.Entry)) {
	e := &d.entries[i]
	d.changes = append(d.changes, changed{e, e.Ceiling, e.Lines, e.Flags, e.Op})
	if e.Op == measure.OpDeduplicate {
		d.pointers--
	}
	change(e)
	if e.Op == measure.OpDeduplicate {
		d.pointers++
	}
	cost := d.rate.Entry(e)
	d.tokens += cost - d.costs[i]
	d.costs[i], d.known, d.searched = cost, false, false
}

// savepoint is a draft as it was.
type savepoint struct {
	entries []measure.Entry
	edits   []events.Edit
	gone    int
}

// savepoint returns the draft as it is, for rollback.
func (d *Draft) savepoint() savepoint {
	d.changes = d.changes[:0]
	return savepoint{d.entries, d.edits, len(d.gone)}
}

// rollback makes the draft what it was at the last savepoint.
func (d *Draft) rollback(was savepoint) {
	if len(d.edits) == len(was.edits) {
		return
	}
	for _, c := range slices.Backward(d.changes) {
		c.at.Ceiling, c.at.Lines, c.at.Flags, c.at.Op = c.ceiling, c.lines, c.flags, c.op
	}
	d.edits, d.gone = was.edits, d.gone[:was.gone]
	d.set(was.entries)
}

// Tokens estimates the history as it is, without the framing of a conversation.
func (d *Draft) Tokens() measure.Tokens { return d.tokens }

// Entries lists the entries in view, not to be changed.
func (d *Draft) Entries() []measure.Entry { return d.entries }

// Edits lists the edits so far, not to be changed.
func (d *Draft) Edits() []events.Edit { return d.edits }

// TokensFrom estimates the entries from position i on as a history of their own.
func (d *Draft) TokensFrom(i int) (sum measure.Tokens) {
	for _, t := range d.costs[i:] {
		sum += t
	}
	return sum
}

// pairing returns what belongs together.
func (d *Draft) pairing() *Pairing {
	if !d.paired {
		d.pairs.find(d.entries, d.format)
		d.paired = true
	}
	return &d.pairs
}

// Messages counts the messages in view, truncation notices included.
func (d *Draft) Messages() int { return d.messages }

// edit sets the op of entries and notes it.
func (d *Draft) edit(o events.Op, at []int) {
	d.edits, d.changes = slices.Grow(d.edits, len(at)), slices.Grow(d.changes, len(at))
	for _, i := range at {
		d.change(i, events.Edit{Op: o, Units: d.rate.PlaceholderUnits(o)})
	}
}

// change puts an edit in force on entry i and notes it.
func (d *Draft) change(i int, x events.Edit) {
	d.alter(i, func(e *measure.Entry) { e.Set(&x) })
	x.Position = d.entries[i].Position()
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
