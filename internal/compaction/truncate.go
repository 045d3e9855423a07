package compaction

import "compactd/internal/events"

// Truncate hides the oldest messages after the head behind one marker: leading
// system messages, the first user message and the first assistant message with
// the results of its calls stay. It makes the smallest cut after which the
// history is at most target tokens; when none is, it cuts the given fraction of
// the messages. An even number of messages goes if one message more makes it so,
// a call is never parted from its results, and the last exchange stays while its
// calls may be open. A history of four messages or less stays.
func (d *Draft) Truncate(target Tokens, fraction PPM) {
	messages := d.messages()
	if messages <= minMessages {
		return
	}
	exchange := d.exchanges()
	pairs := d.pairsWithin(exchange)
	head := d.head(pairs)
	cuts := d.cuts(head, d.awaiting(exchange), pairs)
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
	best := cuts[0]
	for i, c := range cuts {
		if c.saved >= excess {
			if next := i + 1; c.messages%2 == 1 && next < len(cuts) && cuts[next].messages == c.messages+1 {
				return cuts[next].end
			}
			return c.end
		}
		if int64(c.messages)*million <= int64(messages)*int64(fraction) {
			best = c
		}
	}
	return best.end
}

// head returns the number of entries at the front that are never cut. The first
// user message is looked for among the first few: an assistant may greet, and a
// task may come in pieces.
func (d *Draft) head(pairs []int) int {
	start := 0
	for start < len(d.entries) && d.entries[start].Role == RoleSystem {
		start++
	}
	i, few := start, minMessages
	skip := func(user bool) {
		for ; few > 0 && i < len(d.entries) && d.entries[i].Kind != KindMarker && (d.entries[i].Role == RoleUser) == user; few-- {
			i = d.nextMessage(i)
		}
	}
	if skip(false); few == 0 || i == len(d.entries) || d.entries[i].Kind == KindMarker {
		i = start // nobody asked
	}
	skip(true)
	if i == len(d.entries) || d.entries[i].Role != RoleAssistant {
		return i
	}
	for last := i; i < len(d.entries); i++ {
		e := &d.entries[i]
		if e.Flags.has(FlagFirst) && i > last || e.Kind == KindMarker {
			break
		}
		if e.Role == RoleAssistant {
			last = max(last, pairs[i])
		}
	}
	return i
}

// nextMessage returns the position behind the message at i.
func (d *Draft) nextMessage(i int) int {
	k := i + 1
	for k < len(d.entries) && d.entries[k].sameMessage(&d.entries[i]) {
		k++
	}
	return k
}

// cuts lists where a truncation from head may end: at a message's border, not
// beyond limit, with something left, and not between a call and its result.
func (d *Draft) cuts(head, limit int, pairs []int) []cut {
	var out []cut
	c := cut{}
	last := head // furthest result of the calls before
	for i := head; i < len(d.entries) && i <= limit; i++ {
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

// hide replaces the entries from ≤ i < to by a marker or summary.
func (d *Draft) hide(from, to int, stand Entry) {
	first, last := messageOf(d.entries[from].position()), messageOf(d.entries[to-1].end())
	stand.covers(first, last)
	d.edits = append(d.edits, events.Edit{Op: events.OpTruncate, Position: first, To: &last})
	d.entries[to-1] = stand
	d.entries = append(d.entries[:from:from], d.entries[to-1:]...)
}
