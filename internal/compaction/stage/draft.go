package stage

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// Draft is an effective history that stages edit. Each stage can be run alone.
type Draft struct {
	entries []measure.Entry // changed only by set and alter
	format  events.Format
	rate    measure.Rate
	edits   []events.Edit

	// Sums over entries, so that a stage costs only its changes.
	costs    []measure.Tokens // of each
	tokens   measure.Tokens   // of all
	messages int
	pointers int // placeholders that refer to a later read
	restored int // results that are restored
	pinned   bool
	held     int64 // the last of the turns that must not change, 0 for none; see [Draft.Hold]
	pairs    Pairing
	paired   bool           // pairs are those of entries
	repaired measure.Tokens // of all, once repaired
	known    bool           // repaired is that of entries
	lost     []int          // placeholders that are disowned
	searched bool           // lost are those of entries

	fresh measure.Seq // entries from before it are not kept in view
	heads bool        // a cleared failure keeps its first line
	keep  policy.Keep // worth of contents for a choice

	gone [][]measure.Entry // hidden entries, as they were

	changes []changed // since the last savepoint, in order

	before measure.Tokens // tokens before the plan, or before its step

	missing, returned   int // files in use that a step hid, and those it restored
	missingLines, keeps int // the same of lines, and those it keeps

	// Memory for reuse.
	room  []measure.Entry     // for the entries of a plan
	whole map[dialect.Key]int // reads of whole files, by their position from 1
	lines map[read]int        // the same of lines
	list  []int               // entries that a stage edits

	aged      []uint64 // see ages
	joined    []int32  // see exchanged
	exchanges []exchange
	removals  []removal
}

// changed is an entry before alter. It is identified by its address: a stage that hides messages continues
// with other entries, and later changes of those do not count.
type changed struct {
	at      *measure.Entry
	ceiling uint32
	lines   uint16
	flags   measure.Flags
	op      measure.Op
}

// Hold keeps the messages up to a turn unchanged: none of them is edited or hidden.
func (d *Draft) Hold(through int64) {
	d.held = through
	for i := range d.entries[:d.holds()] {
		d.entries[i].Flags |= measure.FlagPinned
		d.pinned = true
	}
}

// holds counts the held entries.
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

// set replaces the entries of the draft.
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

// alter changes the edit or the flags of an entry; its pairing must not change.
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

// savepoint is an earlier state of a draft.
type savepoint struct {
	entries []measure.Entry
	edits   []events.Edit
	gone    int
}

// savepoint returns the state of the draft, for rollback.
func (d *Draft) savepoint() savepoint {
	d.changes = d.changes[:0]
	return savepoint{d.entries, d.edits, len(d.gone)}
}

// rollback returns the draft to the last savepoint.
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

// Tokens estimates the history, without the framing of a conversation.
func (d *Draft) Tokens() measure.Tokens { return d.tokens }

// Entries lists the entries in view. Callers must not change them.
func (d *Draft) Entries() []measure.Entry { return d.entries }

// Edits lists the edits so far. Callers must not change them.
func (d *Draft) Edits() []events.Edit { return d.edits }

// TokensFrom estimates the entries from position i on as a history of their own.
func (d *Draft) TokensFrom(i int) (sum measure.Tokens) {
	for _, t := range d.costs[i:] {
		sum += t
	}
	return sum
}

// pairing returns the pairs of calls and results.
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

// change puts an edit of entry i in force, and adds it to the plan.
func (d *Draft) change(i int, x events.Edit) {
	d.alter(i, func(e *measure.Entry) { e.Set(&x) })
	x.Position = d.entries[i].Position()
	d.edits = append(d.edits, x)
}

// drop takes an entry out of the history.
func (d *Draft) drop(i int) {
	d.alter(i, func(e *measure.Entry) { e.Flags |= measure.FlagEmpty })
	d.note(events.OpDrop, i)
	d.paired = false
}

// note adds an edit of an entry to the plan.
func (d *Draft) note(o events.Op, i int) {
	d.edits = append(d.edits, events.Edit{Op: o, Position: d.entries[i].Position()})
}

// saving is the saving of a placeholder for an entry; it can be negative.
func (d *Draft) saving(i int, o events.Op) measure.Tokens {
	e := d.entries[i]
	e.Set(&events.Edit{Op: o, Units: d.rate.PlaceholderUnits(o)})
	return d.costs[i] - d.rate.Entry(&e)
}
