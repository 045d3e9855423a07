package compaction

import (
	"fmt"

	"compactd/internal/events"
)

// What a text that was cut says. The log keeps the whole for as long as it keeps
// anything, and its place names it there.
const (
	trimTail  = "\n[Content cut to fit the context window; the whole is kept as turn %d, message %d]"
	limitTail = "The whole output is kept as turn %d, message %d: ask compactd.recall for it"

	trimNotice  = 128 // most units of trimTail, numbers included
	limitNotice = 192 // most units of all that LimitOutput adds
)

// trims reports whether an op cuts a text.
func (o op) trims() bool { return o >= opTrim }

// trimOf returns the op of a trim with a direction.
func trimOf(d Direction) op {
	switch d {
	case KeepTail:
		return opTail
	case KeepHead:
		return opHead
	case KeepBoth:
		return opBoth
	default:
		return opTrim
	}
}

func (o op) direction() Direction {
	switch o {
	case opTail:
		return KeepTail
	case opHead:
		return KeepHead
	case opBoth:
		return KeepBoth
	default:
		return ""
	}
}

// trimmed is the ceiling of an entry whose text is cut, framing of its message
// excluded. What stays of the text counts as its share of the whole.
func (r *Rate) trimmed(e *Entry) Tokens {
	t, per := Tokens(e.Images)*r.PerImage, r.TextUnits
	if e.Kind == KindResult {
		t, per = t+r.PerTool, r.ResultUnits
	}
	kept, notice := e.kept()
	if r.Classes && e.Base > 0 {
		base := ceilDiv(int64(e.Base)*kept, max(int64(e.Text), 1)) + ceilDiv(notice, plainUnits) + 1
		if e.Kind == KindRestored {
			base += int64(e.PathBase)
		}
		return t + r.scale(base)
	}
	return t + r.scale(ceilDiv(ceilDiv(int64(e.Text), per)*kept, max(int64(e.Text), 1))+ceilDiv(notice, per))
}

// kept returns how many units of a text that is cut may stay, and how many what is
// said of the cut may have.
func (e *Entry) kept() (text, notice int64) {
	switch {
	case e.Kind == KindRestored:
		notice = restoreNotice + int64(e.PathUnits)
		if int64(e.Ceiling) < int64(e.Text)+notice {
			notice += trimNotice
		}
	case e.Op == opTrim:
		notice = trimNotice
	default:
		notice = limitNotice
	}
	return min(max(int64(e.Ceiling)-notice, 0), int64(e.Text)), notice
}

// size is the number of UTF-16 units of text that are in view.
func (e *Entry) size() int64 {
	if e.Op.trims() {
		return int64(e.Ceiling)
	}
	return int64(e.Text)
}

// trimTo is the entry under a trim to so many units.
func (e *Entry) trimTo(ceiling int64) Entry {
	x := *e
	x.set(&events.Edit{Op: events.OpTrim, Units: ceiling})
	return x
}

// cutParts returns the parts of an entry whose text is cut. Several texts are cut
// as one: what stands behind the cut goes. All other parts stay.
func cutParts(m *events.Message, e *Entry) []events.Part {
	var out []events.Part
	room, _ := e.kept()
	most := shareOf(e, m.Parts[e.Part:e.Part+e.Parts])
	for k := int(e.Part); k < int(e.Part+e.Parts); k++ {
		p := &m.Parts[k]
		n, base := weigh(p.Text)
		switch {
		case p.Kind == events.PartResult && e.Op != opTrim:
			m.SetText(k, limited(e, p.Text, most))
		case p.Kind != events.PartResult && p.Kind != events.PartText:
			n, base = 0, 0
		case room <= 0:
			m.Edited = true
			continue
		case n >= room || base > most:
			m.SetText(k, cutText(e, p.Text, room, most))
			n = room
		}
		room, most = room-n, most-base
		out = append(out, *p)
	}
	return out
}

// shareOf is what the texts of an entry that is cut may weigh: as much of their weight
// as of their units.
func shareOf(e *Entry, parts []events.Part) int64 {
	var base int64
	for i := range parts {
		if p := &parts[i]; p.Kind == events.PartText || p.Kind == events.PartResult {
			_, n := weigh(p.Text)
			base += n
		}
	}
	kept, _ := e.kept()
	return base * kept / max(int64(e.Text), 1)
}

// light returns what keep leaves of a text at a limit of room or below: the first
// that weighs at most most tokens. A part of a text may be denser than the whole.
func fitWeight(room, most int64, keep func(room int64) string) string {
	for {
		s := keep(room)
		_, base := weigh(s)
		if base <= most || room <= 0 {
			return s
		}
		room = min(room*max(most, 0)/base, room-1-room/256)
	}
}

// cutText returns the head of a text, at most room units and most tokens of it, and
// says so.
func cutText(e *Entry, text string, room, most int64) string {
	head := fitWeight(room, most, func(room int64) string {
		s, _ := CutUnits(text, room)
		return s
	})
	return head + fmt.Sprintf(trimTail, e.Turn, e.Index)
}
