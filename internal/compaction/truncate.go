package compaction

import "compactd/internal/events"

// Truncate hides the oldest messages after the head behind one marker: leading
// system messages, the first user message and the first assistant message with
// the results of its calls stay. It makes the smallest cut after which the
// history is at most target tokens; when none is, it cuts the given fraction of
// the messages. An even number of messages goes if that is possible, and a call
// is never parted from its results. A history of four messages or less stays.
func (d *Draft) Truncate(target Tokens, fraction PPM) {
	messages := d.messages()
	if messages <= minMessages {
		return
	}
	pairs := d.pairs()
	head := d.head(pairs)
	cuts := d.cuts(head, pairs)
	if len(cuts) == 0 {
		return
	}
	marker := markerAt(&d.entries[head])
	d.hide(head, choose(cuts, repaired(d.entries, d.format, d.rate)+d.rate.Entry(&marker)-target, messages, fraction), marker)
}

// minMessages is the size up to which a history is not truncated: cutting so few
// messages leaves no conversation.
const minMessages = 4

// cut is one place to end a truncation.
type cut struct {
	end      int // first entry that stays
	messages int // that go, earlier markers not counted
	saved    Tokens
}

// choose returns the end of the cut that saves at least excess with the fewest
// messages, or else of the one nearest to the fraction.
func choose(cuts []cut, excess Tokens, messages int, fraction PPM) int {
	for _, even := range []bool{true, false} {
		for _, c := range cuts {
			if c.saved >= excess && (c.messages%2 == 0 || !even) {
				return c.end
			}
		}
	}
	best := cuts[0]
	for _, c := range cuts {
		if int64(c.messages)*million <= int64(messages)*int64(fraction) {
			best = c
		}
	}
	return best.end
}

// head returns the number of entries at the front that are never cut.
func (d *Draft) head(pairs []int) int {
	i := 0
	skip := func(while func(*Entry) bool) {
		for i < len(d.entries) && while(&d.entries[i]) {
			i++
		}
	}
	skip(func(e *Entry) bool { return e.Role == RoleSystem })
	skip(func(e *Entry) bool { return e.Role == RoleUser && e.Kind != KindMarker })
	for last := i; i < len(d.entries); i++ {
		e := &d.entries[i]
		if e.Role == RoleAssistant && pairs[i] > last {
			last = pairs[i]
		}
		if e.Flags.has(FlagFirst) && i > last || e.Kind == KindMarker {
			break
		}
	}
	return i
}

// cuts lists where a truncation from head may end: at a message's border, with
// something left, and not between a call and its result.
func (d *Draft) cuts(head int, pairs []int) []cut {
	var out []cut
	c := cut{}
	last := head // furthest result of the calls before
	for i := head; i < len(d.entries); i++ {
		e := &d.entries[i]
		if e.Flags.has(FlagFirst) && i > head && i > last && c.messages > 0 {
			c.end = i
			out = append(out, c)
		}
		if e.Flags.has(FlagFirst) && e.Kind != KindMarker {
			c.messages++
		}
		c.saved += d.rate.Entry(e)
		if e.Kind == KindCall {
			last = max(last, pairs[i])
		}
	}
	return out
}

// hide replaces the entries from ≤ i < to by a marker.
func (d *Draft) hide(from, to int, marker Entry) {
	first, last := d.entries[from].position(), d.entries[to-1].position()
	first.Part, last.Part = 0, 0
	d.edits = append(d.edits, events.Edit{Op: events.OpTruncate, Position: first, To: &last})
	d.entries[to-1] = marker
	d.entries = append(d.entries[:from:from], d.entries[to-1:]...)
}
