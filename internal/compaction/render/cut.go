package render

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
)

// cut adds the parts of an entry with a cut text. Several texts are cut as one: text after the cut is
// dropped. All other parts stay.
func (r *renderer) cut(parts []dialect.Part, e *measure.Entry) {
	if e.Kind == measure.KindCall {
		p := parts[0]
		p.SetArgs(cutArgs(e, p.Args, r.placeNotice(e)))
		r.parts = append(r.parts, p)
		return
	}
	room, _ := e.Kept()
	most := shareOf(e, parts)
	for _, p := range parts {
		n, base := measure.Weigh(p.Text)
		switch {
		case p.Kind == dialect.PartResult && e.Op != measure.OpTrim:
			p.SetText(r.limited(e, p.Text, most))
		case p.Kind != dialect.PartResult && p.Kind != dialect.PartText:
			n, base = 0, 0
		case room <= 0:
			continue
		case n >= room || base > most:
			p.SetText(r.cutText(e, p.Text, room, most))
			n = room
		}
		room, most = room-n, most-base
		r.parts = append(r.parts, p)
	}
}

// limited returns the kept end or ends of a tool's output: at most as many units as the ceiling, as many
// bytes as those at the mean of the text, and a weight of most.
func (r *renderer) limited(e *measure.Entry, text string, most int64) string {
	l := measure.DefaultOutputLimits()
	room, notice := e.Kept()
	l.MaxLines, l.Keep = int64(e.Lines), e.Op.Direction()
	l.Whole = r.limitNotice(e, text)
	if l.Keep == measure.KeepLines {
		l.Named = r.named(e)
	}
	if l.Keep == measure.KeepHead {
		text = strings.TrimLeft(text, "\r\n") // the first line of a failure is not empty
	}
	l.MaxLines = cmp.Or(l.MaxLines, math.MaxInt64)
	most += measure.CeilDiv(notice, measure.PlainUnits)
	weigh := func(s string) (units, base int64) {
		units, base = measure.Weigh(s)
		return units, max(base, measure.CeilDiv(units*most, room+notice)) // too many units are too heavy as well
	}
	return fitWeight(weigh, room, most, func(room int64) string {
		l.MaxBytes = room * e.TextBytes() / max(int64(e.Text), 1)
		s, _ := measure.LimitOutput(text, l)
		return s
	})
}

// maxNamed bounds the words that select lines of an output.
const maxNamed = 32

var word = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]{5,}`)

// named are the words of the call that a result answers.
func (r *renderer) named(result *measure.Entry) []string {
	call := r.callOf(result.Call)
	if call == nil {
		return nil
	}
	p, err := r.part(call)
	if err != nil {
		return nil
	}
	return word.FindAllString(string(p.Args), maxNamed)
}

// callOf is the first call with an id, nil for none.
func (r *renderer) callOf(id dialect.Key) *measure.Entry {
	if r.calls == nil {
		r.calls = map[dialect.Key]*measure.Entry{}
		for i := range r.view.Entries {
			e := &r.view.Entries[i]
			if _, ok := r.calls[e.Call]; !ok && e.Kind == measure.KindCall && e.Call != 0 {
				r.calls[e.Call] = e
			}
		}
	}
	return r.calls[id]
}

// cutText returns the head of a text, at most room units and most tokens, with a notice that it is cut. A
// text too short for the notice has dots, and is never empty.
func (r *renderer) cutText(e *measure.Entry, text string, room, most int64) string {
	head := fitWeight(measure.Weigh, room, most, func(room int64) string {
		s, _ := measure.CutUnits(text, room)
		return s
	})
	if _, notice := e.Kept(); notice == 0 {
		return cmp.Or(head, "...")
	}
	return head + r.trimNotice(e, text)
}

// trimNotice is the notice after a cut text.
func (r *renderer) trimNotice(e *measure.Entry, text string) string {
	if r.view.Originals == ByHash {
		return fmt.Sprintf(measure.TrimTailHash, events.ContentHash(uint64(e.Seq), text))
	}
	return r.placeNotice(e)
}

// placeNotice is the notice after cut arguments, which have no hash.
func (r *renderer) placeNotice(e *measure.Entry) string {
	if r.view.Originals == Unnamed {
		return measure.TrimTailUnnamed
	}
	return fmt.Sprintf(measure.TrimTail, e.Turn, e.Index)
}

// limitNotice names the whole of a tool's output in the same way.
func (r *renderer) limitNotice(e *measure.Entry, text string) string {
	switch r.view.Originals {
	case ByHash:
		return fmt.Sprintf(measure.LimitTailHash, events.ContentHash(uint64(e.Seq), text))
	case Unnamed:
		return ""
	default:
		return fmt.Sprintf(measure.LimitTail, e.Turn, e.Index)
	}
}

// shareOf is the allowed weight of a cut entry's texts: the same share of their weight as of their units.
func shareOf(e *measure.Entry, parts []dialect.Part) int64 {
	var base int64
	for i := range parts {
		if p := &parts[i]; p.Kind == dialect.PartText || p.Kind == dialect.PartResult {
			_, n := measure.Weigh(p.Text)
			base += n
		}
	}
	kept, _ := e.Kept()
	return base * kept / max(int64(e.Text), 1)
}

// fitWeight returns the result of keep at the largest tried limit, from room down, that weighs at most most
// tokens. A part of a text may be denser than the whole.
func fitWeight(weigh func(string) (units, base int64), room, most int64, keep func(room int64) string) string {
	for {
		s := keep(room)
		_, base := weigh(s)
		if base <= most || room <= 0 {
			return s
		}
		room = min(room*max(most, 0)/base, room-1-room/256)
	}
}
