package compaction

import "compactd/internal/events"

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

// Stats describes the session under a config.
func (l *Ledger) Stats(c *Config) Stats {
	l.use(c)
	return Stats{
		Budget: l.Budget(), Messages: newDraft(l.visible(), l.format, l.gauge.rate).messages(),
		Turns: l.LastTurn(), Generation: l.Generation(), Through: l.through(), Parked: len(l.parked),
		Prepared: l.prepared != nil, Waiting: l.job != nil,
	}
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
	d := newDraft(l.visibleAt(generation), l.format, l.gauge.rate)
	d.Repair()
	return &View{Format: l.format, entries: d.entries}
}
