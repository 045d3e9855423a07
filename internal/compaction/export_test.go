package compaction

import (
	"fmt"
	"slices"
	"strings"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// Parts of the package that only tests see.

// plain is a profile for scripts: 4 units a token wherever they stand, with
// seed's margin, so that a script is about its stage and not about an estimate.
func init() {
	p := measure.Profiles["seed"]
	p.JSONUnits = 2
	measure.Profiles["plain"] = p
}

// Calibration is what usages made of the estimate.
func (l *Ledger) Calibration() string {
	c := &l.usage
	out := fmt.Sprintf("ratio=%d.%06d learned %d of %d", c.ratio()/measure.Million, c.ratio()%measure.Million, c.Counted, c.Estimated)
	if h := &c.Hidden; h.Sum+h.Of+h.Added > 0 {
		out += fmt.Sprintf("; hidden: %d added, %d of %d stayed, %d in %d answers", h.Added, h.Stayed, h.Of, h.Sum, h.Answers)
	}
	return out
}

// ChunkStart is where chunk c begins.
var ChunkStart = chunkStart

// AwaitsResults reports whether the newest calls have no results yet.
func (l *Ledger) AwaitsResults() bool { return l.awaitsResults() }

// Visible lists the entries in view.
func (l *Ledger) Visible() []measure.Entry { return l.visible() }

// Rate is the rate in use.
func (l *Ledger) Rate() measure.Rate { return l.cache.rate }

// Window is the window in use.
func (l *Ledger) Window() measure.Tokens { return l.cache.window }

// Replan plans once more for a target of the whole input, without a summary.
func (l *Ledger) Replan(p *policy.Policy, total measure.Tokens) stage.Plan {
	target, enough := l.availableFor(total), l.availableFor(l.thresholds().Trigger-1)
	return stage.MakePlan(l.history(), p, l.cache.window, stage.Means{
		Target: target, Truncate: true, Enough: enough, Hidden: l.restorable, Whole: target, WholeEnough: enough, Least: l.least(total),
	})
}

// Media counts the media in view under a config.
func (l *Ledger) Media(c *Config) measure.MediaCount {
	l.use(c)
	return l.cache.media
}

// Dump is everything a ledger holds, with the sum that follows from it.
type Dump struct {
	rest    string
	turns   []turnRecord
	entries []measure.Entry
}

// Dump copies the ledger.
func (l *Ledger) Dump() Dump {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%v model %+v format %s system %v tools %v override %s", l.Address, l.model, l.format, l.system, l.tools, l.override)
	line("regret %v generations %v level %s attempted %d %t %d emitted %d visible %d bytes %d media %v",
		l.regret, l.generations, l.level, l.attempted, l.whileOpen, l.blockedAt, l.compactedTo, l.cache.visible, l.cache.bytes, l.cache.media)
	line("hidden %+v edits %v usage %+v breaker %+v", l.hidden, l.edits, l.usage, l.breaker)
	job := deref(l.job)
	manual := deref(job.Manual)
	model := deref(manual.Model)
	job.Manual, manual.Model = nil, nil
	line("job %+v manual %+v model %+v prepared %+v", job, manual, model, deref(l.prepared))
	line("growth %+v took %v cost %+v work %+v entries %d", l.growth, l.took, l.cost, l.work, l.cache.entries)
	line("last turn %d idle %v ages %v noted %v", l.lastTurnAt, l.idleHandled, l.ages, l.noted)
	line("limits %v overflows %d system at %d tools at %d", l.limits, l.overflows, l.systemSeq, l.toolSeq)
	for _, p := range l.parked {
		t, model := *p, events.Model{}
		if t.model != nil {
			model, t.model = *t.model, nil
		}
		usage, system, tools := deref(t.usage), deref(t.system), deref(t.tools)
		t.usage, t.system, t.tools, t.counted = nil, nil, nil, events.Usage{}
		line("parked %+v model %+v usage %+v system %+v tools %+v", t, model, usage, system, tools)
	}
	return Dump{b.String(), slices.Clone(l.turns), l.entries.List()}
}

// Equal compares two ledgers.
func (d Dump) Equal(x Dump) bool {
	return d.rest == x.rest && slices.Equal(d.turns, x.turns) && slices.Equal(d.entries, x.entries)
}

// String is for people.
func (d Dump) String() string { return fmt.Sprintf("%s%+v\n%+v\n", d.rest, d.turns, d.entries) }

// Prepared reports whether a summary is ready.
func (l *Ledger) Prepared() bool { return l.prepared != nil }

// Manual is the request whose summary the ledger waits for.
func (l *Ledger) Manual() *events.Manual {
	if l.job == nil {
		return nil
	}
	return l.job.Manual
}

// LastSeq is the sequence of the last turn.
func (l *Ledger) LastSeq() uint64 { return l.through().Seq }

// TurnSeq is the sequence of turn n.
func (l *Ledger) TurnSeq(n int64) uint64 { return uint64(l.turns[n-1].seq) }

// Entries lists all entries, hidden or not.
func (l *Ledger) Entries() []measure.Entry { return l.entries.List() }

// AvailableFor is the largest history with which the next call takes at most total.
func (l *Ledger) AvailableFor(total measure.Tokens) measure.Tokens { return l.availableFor(total) }

// Fork is what Decide takes a turn with.
func (l *Ledger) Fork() *Ledger { return l.fork() }

// Chunks is the list of entries of a ledger.
type Chunks = chunks

// Add, Cut, Len and List are what a ledger does with its entries.
func (c *chunks) Add(e measure.Entry) { c.add(e) }

// Cut drops the entries from n on.
func (c *chunks) Cut(n int) { c.cut(n) }

// List returns all entries.
func (c *chunks) List() []measure.Entry {
	out := []measure.Entry{}
	for i := range c.n {
		out = append(out, *c.at(i))
	}
	return out
}

// Search finds the first entry of a turn.
func (c *chunks) Search(turn int64) int {
	return c.search(events.Position{Turn: turn})
}

func deref[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// Input is what the next call takes with a history of so many tokens, once contents are cleared.
func (l *Ledger) Input(history measure.Tokens) measure.Tokens { return l.input(history, false) }
