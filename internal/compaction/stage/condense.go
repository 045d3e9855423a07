package stage

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/weigh"
)

// condense puts a summary in place of its range: the messages after the leading system messages up to and
// including to. Earlier summaries and truncation notices in the range are replaced too; one that reaches
// beyond stays. If turns after the range were retracted, so that calls in it await their results again,
// nothing changes. by chooses entries that are kept or cleared.
func (d *Draft) condense(s *Summary, by *aim) {
	from := d.AfterSystem()
	end := d.Through(from, s.To)
	if end == from || end > d.awaiting() {
		return
	}
	e, to := s.entry(), s.To
	kept := d.pins(from)
	if by != nil {
		c := d.choose(from, end, by, d.rate.Entry(&e), kept)
		d.clearChosen(&c)
		kept = c.keep
	}
	n := len(d.edits)
	d.hide(from, end, e, kept)
	d.edits[n].To = &to
	d.coverKept(from, to)
}

// saves reports whether a summary, if any, can take the place of its range and costs less.
func (d *Draft) saves(s *Summary) bool {
	if s == nil {
		return false
	}
	from := d.AfterSystem()
	end := d.Through(from, s.To)
	if end > d.awaiting() {
		return false
	}
	e := s.entry()
	saved := -d.rate.Entry(&e)
	for _, cost := range d.costs[from:end] {
		saved += cost
	}
	return saved > 0
}

// entry is the placeholder of the range.
func (s *Summary) entry() measure.Entry {
	e := measure.Entry{Seq: s.Seq, Kind: measure.KindSummary, Role: measure.RoleUser, Flags: measure.FlagFirst, Parts: 1, Text: uint32(s.Units)}
	e.SetSpares(s.Kept)
	return e
}

// coverKept lets the summary at a position cover the entries of its range that an earlier placeholder, which
// reaches beyond it, has kept: they are hidden, or kept by the summary.
func (d *Draft) coverKept(at int, to events.Position) {
	inRange := func(e *measure.Entry) bool { return e.Kind < measure.KindTruncation && e.Position().Compare(to) <= 0 }
	end := at + 1
	for end < len(d.entries) && inRange(&d.entries[end]) {
		end++
	}
	if !slices.ContainsFunc(d.entries[end:], func(e measure.Entry) bool { return inRange(&e) }) {
		return
	}
	pins := d.pins(at)
	out, rest := slices.Clone(d.entries[:end]), []measure.Entry(nil)
	for i := end; i < len(d.entries); i++ {
		switch e := &d.entries[i]; {
		case !inRange(e):
			rest = append(rest, *e)
		case pins != nil && pins[i]:
			if out = append(out, *e); e.Flags.Has(measure.FlagFirst) {
				d.edits = append(d.edits, events.Edit{Op: events.OpKeep, Position: measure.MessageOf(e.Position())})
			}
		}
	}
	d.set(append(out, rest...))
}

// AfterSystem returns the beginning of the history after the leading system messages, and after the held
// messages with the results of their calls.
func (d *Draft) AfterSystem() int {
	i := d.holds()
	if i > 0 {
		last := -1
		for _, other := range d.pairing().Other[:i] {
			last = max(last, int(other))
		}
		for i = max(i, last+1); i < len(d.entries) && !d.entries[i].Flags.Has(measure.FlagFirst); {
			i++
		}
	}
	for i < len(d.entries) && d.entries[i].Role == measure.RoleSystem {
		i++
	}
	return i
}

// Through returns the first entry from position i on that reaches beyond to.
func (d *Draft) Through(i int, to events.Position) int {
	for i < len(d.entries) && d.entries[i].End().Compare(to) <= 0 {
		i++
	}
	return i
}

// Condensable returns the smallest range from the beginning after which at most recent tokens stay, else the
// largest that leaves a message, as a summary promises recent messages after it. end is 0 if there is no
// range, or at most four messages. No range ends beyond turn last. fresh is the part of it that is not a
// summary.
func (d *Draft) Condensable(recent measure.Tokens, last int64) (end int, saved, fresh measure.Tokens) {
	if d.Messages() <= MinMessages {
		return 0, 0, 0
	}
	var best cut
	total, start := d.Tokens(), d.AfterSystem()
	var covered events.Position // by a summary: its kept entries are not in the next one
	if start < len(d.entries) && d.entries[start].Kind == measure.KindSummary {
		covered = d.entries[start].End()
	}
	for c := range d.cuts(start, d.pins(start)) {
		if measure.MessageOf(d.entries[c.end-1].End()).Compare(covered) <= 0 {
			continue
		}
		if d.entries[c.end-1].End().Turn > last {
			break
		}
		best = c
		if total-c.saved <= recent {
			break
		}
	}
	fresh = best.saved
	for i := start; i < best.end; i++ {
		if e := &d.entries[i]; e.Kind == measure.KindSummary || measure.MessageOf(e.Position()).Compare(covered) <= 0 {
			fresh -= d.costs[i]
		}
	}
	return best.end, best.saved, fresh
}

// Newest returns the beginning of the newest n messages, without truncation notices.
func (d *Draft) Newest(n int) int {
	for i, e := range slices.Backward(d.entries) {
		if e.Flags.Has(measure.FlagFirst) && e.Kind != measure.KindTruncation {
			if n--; n == 0 {
				return i
			}
		}
	}
	return 0
}

// Old returns the number of entries after the system's messages up to the last one from before a sequence.
func (d *Draft) Old(before measure.Seq) int {
	start := d.AfterSystem()
	for i, e := range slices.Backward(d.entries[start:]) {
		if e.Kind != measure.KindTruncation && e.Seq < before {
			return i + 1
		}
	}
	return 0
}

// UnitsAtDensity returns how many of n units a summary may have if its text is as dense as the conversation:
// a Chinese conversation gets a Chinese summary.
func (d *Draft) UnitsAtDensity(n int64) int64 {
	var words weigh.Size
	for i := range d.entries {
		if e := &d.entries[i]; e.Kind == measure.KindWords && e.JSON == 0 {
			words.Units += int64(e.Text)
			words.Base += int64(e.Base)
		}
	}
	if !d.rate.Classes || words.Base*measure.SummaryUnits <= words.Units {
		return n
	}
	return n / measure.SummaryUnits * words.Units / words.Base
}
