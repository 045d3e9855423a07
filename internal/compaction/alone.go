package compaction

import (
	"cmp"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// Unrecorded describes a history that no log has. What is absent is the session's.
type Unrecorded struct {
	Model         *events.Model
	Format        events.Format
	System, Tools events.Raw
	Policy        events.Raw
	Refused       Tokens // the least estimate of an input that the provider refused, 0 for none
	Ratio         PPM    // that the estimate is corrected by where it is above the session's, 0 for none
}

// Alone fits a history that no log has: the decisions of a session whose turns came one by one,
// so that a longer history is decided about as far as the shorter one was. It makes no
// summaries, and its placeholders name no places. It is for one goroutine.
type Alone struct {
	config *Config
	ledger *Ledger
	turn   Turn
	next   Next
	beside Tokens // of the tail
}

// Alone returns an empty history with what the session has learnt about its model. It shares
// no memory with the ledger. Its error is an [events.Invalid].
func (l *Ledger) Alone(c *Config, x *Unrecorded) (*Alone, error) {
	l.use(c)
	out := NewLedger(l.Address)
	out.model, out.system, out.tools, out.format = l.model, l.system, l.tools, cmp.Or(x.Format, l.format)
	out.limits, out.usage.Ratio, out.prompts.System, out.prompts.Tools = l.limits, l.usage.Ratio, l.prompts.System, l.prompts.Tools
	if m := l.completeModel(x.Model); m != nil && *m != l.model {
		out.model, out.limits, out.usage = *m, limits{}, calibration{}
	}
	by := measure.Meter{Counter: c.counter}
	if s := by.Field(x.System); s != nil {
		out.system = *s
	}
	if s := by.Field(x.Tools); s != nil {
		out.tools = *s
	}
	p := *c.For(l.Address.Tenant)
	override := x.Policy
	if override == nil {
		override = l.override
	}
	if override != nil {
		with, err := p.With(override)
		switch {
		case err == nil:
			p = with
		case x.Policy != nil:
			return nil, err
		}
	}
	p.Summarize.Enabled, p.RecallNotice = false, false
	if err := c.fits("model.max_output_tokens", &out.model, &p); err != nil {
		return nil, err
	}
	if x.Refused > 0 {
		out.limits.lower(x.Refused)
	}
	if x.Ratio > out.usage.Ratio && x.Ratio > measure.Million {
		out.usage.Ratio = min(x.Ratio, mostRatio)
	}
	out.cache.config = c
	out.measureWith(&p)
	return &Alone{config: c, ledger: out}, nil
}

// Ratio is what the estimates are corrected by.
func (a *Alone) Ratio() PPM { return a.ledger.usage.ratio() }

// Beside counts messages that follow all turns, with each of them: see [Alone.End]. Each
// decision leaves room for them.
func (a *Alone) Beside(tail []events.Message) {
	for _, e := range a.measure(tail) {
		a.beside += a.ledger.cache.rate.Entry(&e)
	}
	a.ledger.usage.Correction = a.ledger.usage.scaled(a.beside)
}

// measure lists the entries of a turn.
func (a *Alone) measure(messages []events.Message) []Entry {
	l := a.ledger
	in := &events.Scanned{Dialect: l.format, Contents: messages}
	in.Generation = l.Generation()
	return a.config.TurnInto(&a.turn, l, in, Seq(l.LastTurn()+1)).entries
}

// Add takes a turn and decides about it.
func (a *Alone) Add(messages []events.Message) {
	a.measure(messages)
	a.next.Decide(a.ledger, &a.turn, a.config)
	a.next.Install(a.ledger)
}

// Whole is the budget of a call with messages alone, of which no stage leaves anything out.
func (a *Alone) Whole(messages []events.Message) events.Budget {
	a.measure(messages)
	a.ledger.take(&a.turn, accept)
	return a.ledger.Budget()
}

// End takes the tail, the messages that follow all turns, and returns what fits: the history
// in view, and the budget of a call with it. Turn n has sequence n, the tail the one after the
// last.
func (a *Alone) End(tail []events.Message) (*View, events.Budget) {
	l := a.ledger
	if a.beside > 0 {
		l.usage.Correction = 0
	}
	if len(tail) > 0 {
		a.measure(tail)
		l.take(&a.turn, accept)
	}
	if b := l.Budget(); !b.WithinBudget && l.cache.policy.Enabled {
		a.next.Decide(l, NewCompact(&events.Compact{}, Seq(l.LastTurn()+1)), a.config)
		a.next.Install(l)
	}
	return l.ViewAt(l.Generation()), l.Budget()
}

// WithTail returns the history up to a turn under a generation, with messages behind it that
// no log has, and the budget of a call with them. The tail has the sequence seq and the number
// of the next turn. The budget is counted under what was learnt about the session as a whole.
func (l *Ledger) WithTail(c *Config, generation, turn int64, tail []events.Message, seq Seq) (*View, events.Budget) {
	l.use(c)
	f := l.fork()
	in := &events.Scanned{Dialect: l.format, Contents: tail}
	entries := slices.DeleteFunc(l.visibleAt(generation), func(e Entry) bool { return e.End().Turn > turn })
	before := stage.NewDraft(slices.Clone(entries), l.format, l.cache.rate).Repaired()
	for _, e := range c.Turn(l, in, seq).entries {
		e.Turn = uint32(turn + 1)
		entries = append(entries, e)
	}
	d := stage.NewDraft(entries, l.format, l.cache.rate)
	d.Repair()
	if turn < l.LastTurn() {
		f.resize(before, true)
	}
	f.cache.visible += d.Tokens() - before
	v := l.viewOf(d.Entries(), generation)
	if v.Thinking.Bound && len(tail) > 0 {
		at := uint32(turn + 1)
		v.Thinking.Kept = append(v.Thinking.Kept, render.Turns{From: at, To: at})
	}
	return v, f.Budget()
}
