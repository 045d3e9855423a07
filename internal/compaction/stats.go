package compaction

import (
	"cmp"

	"compactd/internal/events"
)

// Stats is the state of a session, for whoever asks.
type Stats struct {
	Budget     events.Budget
	Messages   int // in view
	Turns      int64
	Generation int64
	Through    events.Through
	Parked     int
	Prepared   bool // a summary is ready
	Waiting    bool // one was asked for
}

// Stats describes the session under a config as it would be with another model;
// what want leaves empty is as the session has it. Its error, an [events.Invalid],
// says that the model may answer more than its window.
func (l *Ledger) Stats(c *Config, want events.Model) (Stats, error) {
	l, err := l.as(c, want)
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		Budget: l.Budget(), Messages: newDraft(l.visible(), l.format, l.cache.rate).messages(),
		Turns: l.LastTurn(), Generation: l.Generation(), Through: l.through(), Parked: len(l.parked),
		Prepared: l.prepared != nil, Waiting: l.job != nil,
	}, nil
}

// Pending is what the next call would send beside the history. Sizes are UTF-16
// code units; 0 leaves system prompt and tools as the session has them.
type Pending struct {
	Model         events.Model // as in [Ledger.Stats]
	System, Tools int64
	Prompt        int64   // of the user
	Files         []int64 // texts attached to it
	Images        int64
	Tokens        Tokens // that the caller counted, beside all others

	// What [Config.ReadPending] measured; nil as in the session.
	system, tools *size
	added         []Entry
	attached      []File
}

// Check compares the next call with the window before it is made (A10). It
// changes nothing; the ledger of an unknown session answers for a first call.
func (l *Ledger) Check(c *Config, next Pending) (events.Budget, error) {
	l, err := l.as(c, next.Model)
	if err != nil {
		return events.Budget{}, err
	}
	r := &l.cache.rate
	p := l.prompt()
	if next.System > 0 {
		p.System = r.Text(next.System) + r.PerMessage
	}
	if next.Tools > 0 {
		p.Tools = r.Text(next.Tools)
	}
	if next.Prompt > 0 {
		p.Current = r.Text(next.Prompt) + r.PerMessage
	}
	for _, units := range next.Files {
		p.Files += r.Text(units)
	}
	p.Files += Tokens(next.Images) * r.PerImage
	l.measured(&p, &next)
	return l.check(p), nil
}

// as returns the ledger as it would be with another model, to be read only. What
// was counted for one model says nothing about another.
func (l *Ledger) as(c *Config, want events.Model) (*Ledger, error) {
	l.use(c)
	m := l.model
	m.Provider, m.Name = cmp.Or(want.Provider, m.Provider), want.Name
	if want.Provider+want.Name == "" {
		m.Name = l.model.Name
	}
	same := Provider(m.Provider) == Provider(l.model.Provider) && m.Name == l.model.Name
	if !same {
		m.MaxOutputTokens, m.ContextWindow = 0, 0
	}
	m.MaxOutputTokens = cmp.Or(want.MaxOutputTokens, m.MaxOutputTokens)
	m.ContextWindow = cmp.Or(want.ContextWindow, m.ContextWindow)
	if m == l.model {
		return l, nil
	}
	if err := c.fits("max_output_tokens", &m, l.cache.policy); err != nil {
		return nil, err
	}
	f := l.fork()
	f.model = m
	if !same {
		f.usage, f.stated = calibration{}, 0
	}
	f.measure()
	return f, nil
}

// View returns the effective history as it stands, repaired, and the sequences of
// the turns that hold the system prompt and the tools, 0 if there are none.
func (l *Ledger) View() (v *View, system, tools Seq) {
	return l.ViewAt(l.Generation()), l.systemSeq, l.toolSeq
}

// ViewAt returns the history as a generation would have it, with every turn taken
// since, repaired. The generation is 0, the history as it was published, to that
// of the ledger.
func (l *Ledger) ViewAt(generation int64) *View {
	d := newDraft(l.visibleAt(generation), l.format, l.cache.rate)
	d.Repair()
	return l.viewOf(d.Entries())
}

// viewOf is the view of entries as the session's policy has it told.
func (l *Ledger) viewOf(entries []Entry) *View {
	return NewView(l.format, CustomOf(l.cache.policy.Profile).PlaceholderRole, entries)
}
