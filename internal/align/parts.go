package align

import (
	"fmt"
	"slices"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Output is a sent message and its sources, the caller's messages From ≤ i < To; if both are equal it has no
// source. Untouched: it is its one source, unchanged.
type Output struct {
	Raw       codec.Raw
	From, To  int
	Untouched bool
}

// group is a run of outputs that replace one range of messages, which no other group replaces.
type group struct {
	first, last int // of the outputs
	from, to    int
	made        bool
}

// Parts describes outputs as parts of a history of n messages.
func Parts(n int, outputs []Output) []events.SyncPart {
	b := builder{}
	at := 0
	groups := groupsOf(outputs)
	for i := 0; i < len(groups); {
		made := i
		for i < len(groups) && groups[i].made {
			i++
		}
		next := n
		if i < len(groups) {
			next = groups[i].from
		}
		b.gap(outputs, groups[made:i], at, next)
		if i < len(groups) {
			b.group(outputs, &groups[i])
			at = groups[i].to
			i++
		}
	}
	if len(groups) == 0 || !groups[len(groups)-1].made {
		b.drop(at, n)
	}
	return b.parts
}

// groupsOf joins outputs whose ranges overlap, or are out of order, with all between them.
func groupsOf(outputs []Output) []group {
	out := make([]group, 0, len(outputs))
	for i := range outputs {
		o := &outputs[i]
		g := group{first: i, last: i, from: o.From, to: o.To, made: o.From >= o.To}
		if !g.made {
			for j, before := range slices.Backward(out) {
				if before.made {
					continue
				}
				if before.to <= g.from {
					break
				}
				g.first, g.from, g.to = before.first, min(g.from, before.from), max(g.to, before.to)
				out = out[:j]
			}
		}
		out = append(out, g)
	}
	return out
}

type builder struct{ parts []events.SyncPart }

func span(from, to int) *events.SyncRange { return &events.SyncRange{int64(from), int64(to)} }

// gap adds the parts of a range without outputs.
func (b *builder) gap(outputs []Output, made []group, from, to int) {
	if len(made) == 0 {
		b.drop(from, to)
		return
	}
	for i := range made {
		b.message(&outputs[made[i].first], from, to)
		from = to
	}
}

func (b *builder) message(o *Output, from, to int) {
	b.parts = append(b.parts, events.SyncPart{Message: o.Raw, StandsFor: span(from, to)})
}

func (b *builder) drop(from, to int) {
	if from < to {
		b.parts = append(b.parts, events.SyncPart{Drop: span(from, to)})
	}
}

// group adds outputs made from a range.
func (b *builder) group(outputs []Output, g *group) {
	o := &outputs[g.first]
	switch one := g.first == g.last && g.to == g.from+1; {
	case one && o.Untouched:
		b.keep(g.from)
	case one:
		at := int64(g.from)
		b.parts = append(b.parts, events.SyncPart{Edit: &at, Message: o.Raw})
	default:
		from, to := g.from, g.to
		for i := g.first; i <= g.last; i++ {
			b.message(&outputs[i], from, to)
			from = to
		}
	}
}

func (b *builder) keep(i int) {
	if n := len(b.parts); n > 0 && b.parts[n-1].Keep != nil && b.parts[n-1].Keep[1] == int64(i) {
		b.parts[n-1].Keep[1]++
		return
	}
	b.parts = append(b.parts, events.SyncPart{Keep: span(i, i+1)})
}

// Keep is the part that keeps a whole history.
func Keep(n int) []events.SyncPart {
	if n == 0 {
		return []events.SyncPart{}
	}
	return []events.SyncPart{{Keep: span(0, n)}}
}

// Changed reports whether parts are more than a whole history of n messages.
func Changed(parts []events.SyncPart, n int) bool {
	return n > 0 && (len(parts) != 1 || parts[0].Keep == nil) || n == 0 && len(parts) > 0
}

// Find notes which messages from ≤ i < to of a history the outputs are: the same content and ids of calls, in
// the same order. Each of two equal calls is answered by a result of its own.
func Find(h *History, from, to int, outputs []Output) {
	places := map[likeness][]int{}
	for i := from; i < to; i++ {
		x := h.likeness(h.At(i))
		places[x] = append(places[x], i)
	}
	next := from
	for i := range outputs {
		o := &outputs[i]
		o.From, o.To, o.Untouched = 0, 0, false
		x := h.likeness(o.Raw)
		list := places[x]
		for len(list) > 0 && list[0] < next {
			list = list[1:]
		}
		if places[x] = list; len(list) > 0 {
			at := list[0]
			o.From, o.To, o.Untouched = at, at+1, true
			next = at + 1
		}
	}
}

// likeness is the content and the ids of calls, which equal messages share.
type likeness struct {
	content events.Digest
	ids     string
}

func (h *History) likeness(raw codec.Raw) likeness {
	ids, _ := h.calls(raw)
	return likeness{h.Format.DigestOf([]codec.Raw{raw}), fmt.Sprintf("%q", ids)}
}

// Apply applies parts to a history.
func Apply(history []codec.Raw, parts []events.SyncPart) []codec.Raw {
	out := []codec.Raw{}
	for _, p := range parts {
		switch {
		case p.Keep != nil:
			out = append(out, history[p.Keep[0]:p.Keep[1]]...)
		case p.Message != nil:
			out = append(out, p.Message)
		}
	}
	return out
}

// Freeze returns parts that leave the first n messages of a history unchanged: with all changes after them,
// but without replacements of them.
func Freeze(parts []events.SyncPart, n int) []events.SyncPart {
	out := Keep(n)
	skipped := false // the message before was skipped, as are additions after it
	for _, p := range parts {
		at := rangeOf(&p)
		from := max(at[0], int64(n))
		skipped = p.StandsFor != nil && (at[0] < int64(n) || skipped && at[0] == at[1])
		switch {
		case !skipped && at[0] == from:
			out = append(out, p)
		case from < at[1] && p.Edit == nil:
			out = append(out, events.SyncPart{Keep: &events.SyncRange{from, at[1]}})
		}
	}
	return out
}

// Holds reports whether parts leave the first n messages of a history unchanged, with nothing between them.
func Holds(parts []events.SyncPart, n int) bool {
	return n == 0 || len(parts) > 0 && parts[0].Keep != nil && parts[0].Keep[1] >= int64(n)
}

// rangeOf are the messages that a part is about.
func rangeOf(p *events.SyncPart) events.SyncRange {
	switch {
	case p.Keep != nil:
		return *p.Keep
	case p.Drop != nil:
		return *p.Drop
	case p.Edit != nil:
		return events.SyncRange{*p.Edit, *p.Edit + 1}
	default:
		return *p.StandsFor
	}
}
