package stage

import (
	"iter"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Truncate hides the oldest messages after the head behind one truncation notice. The head is the leading
// system messages and a summary, or without one the first user message and the first assistant message with
// the results of its calls. If the part of these that cannot be cut exceeds headShare of the target, the
// assistant's message goes too, and then the user's, unless its text can be cut. The assistant's message also
// goes if a cut reaches the target without it alone. The user's last prompt stays: see staying.
//
// Truncate makes the smallest cut after which the history is at most target tokens, else it cuts the given
// fraction of the messages after the head, rounded down to an even number, but at least two. The number of
// messages is even if one more allows it, or for the fraction one less. Nothing is cut if that saves less
// than the notice costs. A call is never split from its results, and the last exchange stays while its calls
// may be open. A history of four messages or less stays, unless a model's response cannot be trimmed and
// leaving it out is enough.
func (d *Draft) Truncate(target measure.Tokens, fraction measure.PPM) {
	few := d.Messages() <= MinMessages
	if few && !d.format.Dialect().Units {
		return
	}
	heads := d.leads(headRoom(target))
	if heads[0] == len(d.entries) {
		return
	}
	t := d.truncation(heads[0], target, fraction)
	for _, head := range heads[1:] {
		if less := d.truncation(head, target, fraction); !t.enough() && less.enough() {
			t = less
		}
	}
	if t.saved > d.rate.Entry(&t.notice) && (!few || t.enough()) {
		d.hide(t.head, t.end, t.notice, t.kept)
	}
}

// truncation hides the entries from head to the end of a cut, but for the kept ones.
type truncation struct {
	cut
	head   int
	notice measure.Entry
	kept   []bool
	excess measure.Tokens // to be saved
}

func (t *truncation) enough() bool { return t.saved >= t.excess }

// truncation chooses the cut after a head: see Truncate.
func (d *Draft) truncation(head int, target measure.Tokens, fraction measure.PPM) truncation {
	t := truncation{head: head, notice: d.notice(head), kept: d.staying(head, target)}
	t.excess = d.Repaired() + d.rate.Entry(&t.notice) - target
	most := max(2, int(fraction.Share(measure.Tokens(d.messages-messagesOf(d.entries[:head]))))&^1)
	t.cut = choose(d.cuts(head, t.kept), t.excess, most)
	return t
}

// TruncateOld hides messages from before a sequence behind a truncation notice, the first exchange included,
// since their text will be gone. It changes nothing if calls in them are still open, or if nothing newer is
// there.
func (d *Draft) TruncateOld(before measure.Seq) {
	d.hiding(func() {
		start := d.AfterSystem()
		end := start + max(d.Old(before), 1)
		for c := range d.cuts(start, nil) {
			if c.end >= end {
				d.hide(start, c.end, measure.TruncationAt(&d.entries[start]), nil)
				return
			}
		}
	})
}

// Fold hides the oldest messages behind a truncation notice, the first exchange included, until at most most
// entries are left, or as few as open calls allow. Pinned messages stay while they are few.
func (d *Draft) Fold(most int) {
	d.hiding(func() {
		start := d.AfterSystem()
		kept := d.pins(start)
		pinned := 0
		for _, is := range kept {
			if is {
				pinned++
			}
		}
		if pinned > most/2 {
			kept, pinned = nil, 0
		}
		end := 0
		for c := range d.cuts(start, kept) {
			if end = c.end; len(d.entries)-(end-start)+pinned < most {
				break
			}
		}
		if end > 0 {
			d.hide(start, end, d.notice(start), kept)
		}
	})
}

// notice is the truncation notice of messages from a position on.
func (d *Draft) notice(from int) measure.Entry {
	out := measure.TruncationAt(&d.entries[from])
	if d.rate.Recall {
		out.Text = uint32(measure.UnitsOf(measure.TruncateText + measure.RecallMarker))
	}
	return out
}

// messagesOf counts the messages that entries belong to.
func messagesOf(entries []measure.Entry) (n int) {
	for i := range entries {
		if entries[i].Flags.Has(measure.FlagFirst) {
			n++
		}
	}
	return n
}

// MinMessages is the largest history that is not truncated: fewer messages would be no conversation.
const MinMessages = 4

// cut is a possible end of a truncation.
type cut struct {
	end      int // first entry that stays
	messages int // hidden messages, without earlier notices
	saved    measure.Tokens
}

// choose returns the cut that saves at least excess with the most messages, else the largest one of at most
// most messages, else the smallest; the zero cut if there is none.
func choose(cuts iter.Seq[cut], excess measure.Tokens, most int) cut {
	var best cut
	enough := false
	for c := range cuts {
		switch {
		case enough: // one message more makes the number even
			if c.messages == best.messages+1 {
				best = c
			}
			return best
		case c.saved >= excess && c.messages%2 == 0:
			return c
		case c.saved >= excess:
			best, enough = c, true
		case best.end == 0 || c.messages <= most && (c.messages%2 == 0 || best.messages != c.messages-1):
			best = c
		}
	}
	return best
}

// headShare is the part of the target that the uncuttable contents of the first exchange may take, and
// leastHead a lower bound of it in tokens. A larger exchange is part of the problem, and would stay until the
// session ends.
const (
	headShare measure.PPM    = 500_000
	leastHead measure.Tokens = 3_000
)

// headRoom is the most that the uncuttable contents of the first exchange, or of the last prompt, may cost.
func headRoom(target measure.Tokens) measure.Tokens { return max(headShare.Share(target), leastHead) }

// leads returns the possible numbers of entries at the front that a truncation leaves: see Truncate. The
// contents of a head that cannot be cut, beside the system's messages, cost at most most tokens.
func (d *Draft) leads(most measure.Tokens) []int {
	start := d.AfterSystem()
	summaries := start
	for summaries < len(d.entries) && d.entries[summaries].Kind == measure.KindSummary {
		summaries++
	}
	if summaries > start {
		return []int{summaries}
	}
	var out []int
	user := d.firstUser(start)
	for _, end := range []int{d.firstAnswer(user), user} {
		if d.least(start, end) <= most {
			out = append(out, end)
		}
	}
	if out == nil {
		out = append(out, start)
	}
	return out
}

// firstUser returns the end of the first message of the user, start if there is none. It is among the first
// few messages: an assistant may greet, and a task may come in pieces. Messages without words do not count,
// since they are left out.
func (d *Draft) firstUser(start int) int {
	i, few := start, MinMessages
	skip := func(user bool) {
		for few > 0 && i < len(d.entries) && d.entries[i].Kind != measure.KindTruncation && (d.wordless(i) || (d.entries[i].Role == measure.RoleUser) == user) {
			if !d.wordless(i) {
				few--
			}
			i = d.nextMessage(i)
		}
	}
	if skip(false); few == 0 || i == len(d.entries) || d.entries[i].Kind == measure.KindTruncation {
		i = start // no user message
	}
	skip(true)
	return i
}

// wordless reports whether the message at i has one content, which is empty.
func (d *Draft) wordless(i int) bool {
	e := &d.entries[i]
	return e.Kind == measure.KindWords && e.Parts <= 1 && e.Size() == 0 && d.nextMessage(i) == i+1
}

// firstAnswer returns the end of the assistant's message at i with the results of its calls, i if another
// message is there.
func (d *Draft) firstAnswer(i int) int {
	if i == len(d.entries) || d.entries[i].Role != measure.RoleAssistant {
		return i
	}
	other := d.pairing().Other
	for last := i; i < len(d.entries); i++ {
		e := &d.entries[i]
		if e.Flags.Has(measure.FlagFirst) && i > last && !d.splitsUnit(i-1, i) || e.Kind == measure.KindTruncation {
			break
		}
		if e.Role == measure.RoleAssistant {
			last = max(last, int(other[i]))
		}
	}
	return i
}

// least is the cost of the entries from ≤ i < to when all are cut as far as possible.
func (d *Draft) least(from, to int) (sum measure.Tokens) {
	for i := from; i < to; i++ {
		sum += d.costs[i]
		if e := &d.entries[i]; e.Cuttable() && !pinned(*e) && !d.inUnit(e) {
			sum -= d.cutting(content{at: i, least: leastTrim}, 0)
		}
	}
	return sum
}

// nextMessage returns the position after the message at i.
func (d *Draft) nextMessage(i int) int {
	k := i + 1
	for k < len(d.entries) && d.entries[k].SameMessage(&d.entries[i]) {
		k++
	}
	return k
}

// cuts yields the possible ends of a truncation from head: boundaries of messages after which something
// stays, outside the last exchange while its calls may be open, outside a pair of call and result, and
// outside the range of an earlier placeholder. Kept entries do not count, and no cut ends behind them.
func (d *Draft) cuts(head int, kept []bool) iter.Seq[cut] {
	return func(yield func(cut) bool) {
		var c cut
		var yielded measure.Tokens
		other, limit := d.pairing().Other, d.awaiting()
		last, before := head, -1  // furthest result of earlier calls; the entry rendered before
		var reach events.Position // furthest message of earlier entries
		for i := head; i < len(d.entries) && i <= limit; i++ {
			e := &d.entries[i]
			if e.Flags.Has(measure.FlagFirst) && i > head && i > last && c.messages > 0 && c.saved > yielded && !d.splitsUnit(before, i) && e.Compare(reach) > 0 {
				if c.end, yielded = i, c.saved; !yield(c) {
					return
				}
			}
			if end := e.End(); end.Compare(reach) > 0 {
				reach = end
			}
			if kept == nil || !kept[i] {
				if e.Flags.Has(measure.FlagFirst) && e.Kind != measure.KindTruncation {
					c.messages++
				}
				c.saved += d.costs[i]
			}
			if e.Kind == measure.KindCall || e.HostedHalf() > 0 {
				last = max(last, int(other[i]))
			}
			if !e.Flags.Has(measure.FlagEmpty) {
				before = i
			}
		}
	}
}

// spare is room for restored entries and repairs, so that neither copies the entries.
const spare = 16

// hide replaces the entries from ≤ i < to by a placeholder. The kept entries among them follow it.
func (d *Draft) hide(from, to int, placeholder measure.Entry, kept []bool) {
	first, last := measure.MessageOf(d.entries[from].Position()), d.EndOf(from, to)
	placeholder.Covers(first, last)
	x := events.Edit{Op: events.OpTruncate, Position: first, To: &last}
	switch {
	case placeholder.Kind == measure.KindSummary:
		kept := placeholder.Spares()
		x.Op, x.Seq, x.Units, x.Spare = events.OpCondense, uint64(placeholder.Seq), int64(placeholder.Text), kept.List()
	case d.rate.Recall:
		x.Units = int64(placeholder.Text)
	}
	d.edits, d.gone = append(d.edits, x), append(d.gone, d.entries[from:to])
	n := len(d.entries) - (to - from) + 1
	for i := from; kept != nil && i < to; i++ {
		if kept[i] {
			n++
		}
	}
	out := append(append(make([]measure.Entry, 0, n+spare), d.entries[:from]...), placeholder)
	for i := from; kept != nil && i < to; i++ {
		if e := &d.entries[i]; kept[i] {
			if e.Flags.Has(measure.FlagFirst) {
				d.edits = append(d.edits, events.Edit{Op: events.OpKeep, Position: measure.MessageOf(e.Position())})
			}
			out = append(out, *e)
		}
	}
	d.set(append(out, d.entries[to:]...))
}
