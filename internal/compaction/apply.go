package compaction

import (
	"bytes"
	"slices"

	"compactd/internal/events"
)

// Outcome is what a worker tells about an event: the payload that goes out, and
// the view to render into it.
type Outcome struct {
	Kind events.Kind
	// Body is a *events.Compacted without messages, a *events.BudgetChanged or
	// a *events.Rejected.
	Body any
	// View is the effective history that a compaction tells; nil for any other
	// outcome.
	View *View
}

// Apply brings a ledger up to date with an event and what was told about it. It
// holds no judgement: the outcomes may be fresh from Decide or recorded years
// ago by another version. A nil turn is an event that could not be read.
func Apply(l *Ledger, t *Turn, outs []Outcome, c *Config) {
	l.use(c)
	if t != nil && !slices.ContainsFunc(outs, denies) {
		l.take(t)
	}
	for _, o := range outs {
		switch b := o.Body.(type) {
		case *events.Compacted:
			l.compacted(b)
		case *events.BudgetChanged:
			l.level = b.Level
		}
	}
}

// denies reports whether an outcome says that its event was not taken.
func denies(o Outcome) bool {
	r, ok := o.Body.(*events.Rejected)
	return ok && events.Codes[r.Code].Denies
}

// take adds a turn that was not denied: at its place, to the parked ones, or not
// at all when it is there already. Parked turns follow as soon as they can.
func (l *Ledger) take(t *Turn) {
	switch v, _ := l.admit(t); v {
	case ignore, deny: // denied is only what was taken when turns before it were still in the log
		return
	case park:
		l.parked = append(l.parked, t)
		return
	}
	if t.from > 0 {
		l.withdraw(t.from)
	}
	l.append(t)
	// What was parked before the session had a dialect may have been read in another.
	l.parked = slices.DeleteFunc(l.parked, func(p *Turn) bool { return p.format != l.format })
	for {
		i := slices.IndexFunc(l.parked, func(p *Turn) bool { return p.number == l.LastTurn()+1 })
		if i < 0 {
			return
		}
		p := l.parked[i]
		l.parked = slices.Delete(l.parked, i, i+1)
		l.append(p)
	}
}

// withdraw takes back the turns from number k on, parked ones included.
func (l *Ledger) withdraw(k int64) {
	l.parked = slices.DeleteFunc(l.parked, func(p *Turn) bool { return p.number >= k })
	if k > l.LastTurn() {
		return
	}
	l.turns = slices.Clip(l.turns[:k-1]) // the next turn must not write into what a fork shares
	l.entries.cut(l.entries.search(func(e *Entry) int { return e.compare(events.Position{Turn: k}) }))
	l.hidden = slices.DeleteFunc(l.hidden, func(s span) bool { return s.from >= l.entries.n })
	for i := range l.hidden {
		l.hidden[i].to = min(l.hidden[i].to, l.entries.n)
	}
	l.told = min(l.told, l.entries.n)
	l.recount()
}

func (l *Ledger) append(t *Turn) {
	l.turns = append(l.turns, turnMark{hash: t.hash, seq: t.Seq})
	l.format = t.format
	if t.system != unchanged {
		l.systemUnits = t.system
	}
	if t.tools != unchanged {
		l.toolUnits = t.tools
	}
	if t.model != nil && *t.model != l.model || t.override != nil && !bytes.Equal(t.override, l.override) {
		if t.model != nil {
			l.model = *t.model
		}
		if t.override != nil {
			l.override = t.override
		}
		l.attempted = 0
		l.measure()
	}
	for _, e := range t.entries {
		e.Turn = uint32(len(l.turns))
		l.link(&e)
		l.entries.add(e)
		l.gauge.visible += l.gauge.rate.Entry(&e)
	}
}

// compacted carries out the edits of a compaction.
func (l *Ledger) compacted(b *events.Compacted) {
	l.level = b.Budget.Level
	l.attempted = 0
	if b.Budget.ShouldCompact {
		l.attempted = Tokens(b.Budget.EstimatedInput)
	}
	if !b.Compacted {
		return
	}
	l.generation, l.told = b.Generation, l.entries.n
	for _, e := range b.Edits {
		l.edit(e, b.Generation)
	}
	l.recount()
}

func (l *Ledger) edit(e events.Edit, gen int64) {
	at := l.entries.search(func(x *Entry) int { return x.compare(e.Position) })
	if at == l.entries.n {
		return // withdrawn since
	}
	switch e.Op {
	case events.OpClear, events.OpDeduplicate:
		x := l.entries.at(at)
		if x.compare(e.Position) != 0 {
			return
		}
		x.Op, x.Gen = opOf(e.Op), uint32(gen)
	case events.OpTruncate:
		after := *e.To
		after.Index, after.Part = after.Index+1, 0
		to := l.entries.search(func(x *Entry) int { return x.compare(after) })
		if to > at {
			l.hidden = append(l.hidden, span{at, to, gen})
		}
	}
}
