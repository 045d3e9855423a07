package compaction

import (
	"math"
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// The log keeps an event for the retention. At half the retention a summary replaces an entry in view,
// whatever the usage, before its text is gone. Without a summary the entries are truncated at three quarters.

const (
	defaultRetention int64 = 30 * 24 * 60 * 60 * 1000
	forever          int64 = 1 << 62

	// leastOld is the cost that a summary of a few old words may always have, in tokens: it keeps their
	// content, and need not save.
	leastOld measure.Tokens = 1_000

	// agesPerRetention is the resolution of ages in a ledger: an entry may count as older than it is by a
	// 64th of the retention.
	agesPerRetention = 64
)

// age records that events from Seq on were stored at Time, in Unix milliseconds, or later.
type age struct {
	Seq  measure.Seq `json:"seq"`
	Time int64       `json:"time"`
}

// date notes the time at which an event was stored. Of dates older than three quarters of the retention one
// is kept.
func (l *Ledger) date(seq measure.Seq, now int64) {
	h := l.cache.config.retention
	switch n := len(l.ages); {
	case n == 0: // there is nothing before it
		l.ages = append(l.ages, age{Time: now})
		return
	case now-l.ages[n-1].Time < h/agesPerRetention || seq <= l.ages[n-1].Seq:
		return
	}
	l.ages = append(l.ages, age{seq, now})
	if young := l.young(now, h/4*3); young > 1 {
		l.ages = l.ages[young-1:]
	}
}

// young returns the index of the first date younger than by.
func (l *Ledger) young(now, by int64) int {
	i := slices.IndexFunc(l.ages, func(a age) bool { return now-a.Time < by })
	if i < 0 {
		return len(l.ages)
	}
	return i
}

// since returns the first sequence younger than by: 0 if all are, the largest number if none is.
func (l *Ledger) since(now, by int64) measure.Seq {
	switch i := l.young(now, by); {
	case i == 0:
		return 0
	case i == len(l.ages):
		return math.MaxUint64
	default:
		return l.ages[i].Seq
	}
}

// Expired reports whether a session has been idle for the whole retention. Nothing of it is left in the log,
// so it counts as never published. now is in Unix milliseconds of the log.
func (l *Ledger) Expired(now int64, c *Config) bool {
	return l.HasTurns() && c.Expired(l.lastTurnAt, now)
}

// Expired reports the same by the time of a session's last turn.
func (c *Config) Expired(lastTurnAt, now int64) bool { return now-lastTurnAt >= c.retention }

// namingsPerRetention is the resolution of [Config.NamesAgain].
const namingsPerRetention = 30

// NamesAgain reports whether a turn is a session's first one in its part of the retention, by the time of the last turn.
// The log of another session names its branch again with such a turn, since the log does not keep the last naming.
func (c *Config) NamesAgain(lastTurnAt, now int64) bool {
	part := c.retention / namingsPerRetention
	return lastTurnAt/part != now/part
}

// LastTurnAt is the time of the last turn, taken or parked, in Unix milliseconds of the log.
func (l *Ledger) LastTurnAt() int64 { return l.lastTurnAt }

// Idle reports whether a session.idle is due under a config. now is in Unix milliseconds of the log.
func (l *Ledger) Idle(now int64, c *Config) bool {
	l.use(c)
	p := l.cache.policy
	if !p.Enabled || !p.Prune.Enabled || l.LastTurn() == 0 || l.idleHandled {
		return false
	}
	if after := p.Prune.IdleAfter(); after > 0 {
		return now-l.lastTurnAt >= after
	}
	return l.coldDue(now)
}

// LastTurnSeq is the sequence of the last turn. Two session.idle events with the same one
// report the same idle period.
func (l *Ledger) LastTurnSeq() measure.Seq { return measure.Seq(l.through().Seq) }

// old reports whether the text of anything in view, after the system's messages, is
// older than half the retention.
func (l *Ledger) old(now int64) bool { return l.holds(l.since(now, l.cache.config.retention/2)) }

// holds reports whether anything in view is from before a sequence.
func (l *Ledger) holds(before measure.Seq) bool {
	return before > 0 && l.draft().Old(before) > 0
}

// fresh returns the first sequence younger than retention/part at the last event.
func (l *Ledger) fresh(part int64) measure.Seq {
	if len(l.ages) == 0 {
		return 0
	}
	return l.since(l.ages[len(l.ages)-1].Time, l.cache.config.retention/part)
}

// age handles entries that have become old, if nothing else was emitted. It reads the whole view, so it runs
// at most once for each date of the ledger.
func (d *decision) age(before, l *Ledger) {
	p := l.cache.policy
	if !p.Enabled || !d.aged(before, l) || slices.ContainsFunc(d.outs, moves) || !l.old(d.now) {
		return
	}
	overdue := l.holds(l.since(d.now, l.cache.config.retention/4*3))
	tried := l.job != nil || l.breaker.Failures > 0
	var job *events.Job
	switch {
	case l.prepared != nil && p.Summarize.Enabled:
		d.merge(l, l.Budget())
		return
	case l.waits(d.now):
		return
	case l.maySummarize(d.now) && !(overdue && tried):
		job = d.planOld(l)
	}
	if d.emitJob(job); job == nil && p.Truncate.Enabled && (overdue || !p.Summarize.Enabled) {
		d.truncateOld(l)
	}
}

// aged reports whether a new date is due: entries may have become old, or it is time to try again.
func (d *decision) aged(before, l *Ledger) bool {
	half, n, was := l.cache.config.retention/2, len(l.ages), len(before.ages)
	return l.since(d.now, half) != before.since(before.lastTurnAt, half) || was == 0 || l.ages[n-1] != before.ages[was-1]
}

// moves reports whether an outcome changes the view, or a job that will.
func moves(o Outcome) bool {
	_, compacted := o.Body.(*events.Compacted)
	return compacted || isJob(o)
}

// planOld returns the job for a summary of the entries older than a quarter of the retention, so that the
// next one is not needed soon. At least one of them must not be a summary. Restored entries go with the range
// that hides them.
func (d *decision) planOld(l *Ledger) *events.Job {
	g := &l.cache
	draft := l.draft()
	draft.DropRestored()
	entries, from, n := draft.Entries(), draft.AfterSystem(), max(draft.Old(l.fresh(4)), 1)
	if from < len(entries) && entries[from].Kind == measure.KindSummary {
		n = max(n, 2)
	}
	rest := draft.TokensFrom(min(from+n, len(entries)))
	return d.jobFor(l, draft, jobSpec{lane: events.LaneBackground, recent: rest, ceiling: g.policy.Summarize.Ceiling(l.thresholds().Available), least: 1, old: true})
}

// truncateOld hides old entries behind a truncation notice, the first exchange included.
func (d *decision) truncateOld(l *Ledger) {
	before := l.fresh(2)
	plan := l.planOf(stage.Step{Name: events.StageTruncate, Force: true, Run: func(x *stage.Draft) { x.TruncateOld(before) }})
	if plan.Uses(events.StageTruncate) {
		d.emitPlan(l, plan, events.ReasonAge)
	}
}

// foldSteps is the number of steps in which a session grows above its bound of entries. At each step a plan
// hides the oldest entries again: open calls may have kept some in view.
const foldSteps = 8

// mayFold bounds the plans for a session above its bound of entries: one when it reaches the bound, one after
// a compaction, one at each step.
func (l *Ledger) mayFold(next *Ledger) bool {
	most := next.cache.policy.MaxEntries
	if most == 0 || int64(next.cache.entries) <= most {
		return false
	}
	was, now := int64(l.cache.entries), int64(next.cache.entries)
	step := max(most/foldSteps, 1)
	return was <= most || was/step != now/step || l.compactedTo == l.entries.n
}

// folding returns the step that hides the oldest entries, none if the policy allows so many. It keeps half of
// the bound, so that it is not due again soon.
func (l *Ledger) folding(entries int) []stage.Step {
	most := int(l.cache.policy.MaxEntries)
	if most == 0 || entries <= most {
		return nil
	}
	return []stage.Step{{Name: events.StageTruncate, Force: true, Run: func(x *stage.Draft) { x.Fold(most / 2) }}}
}

// fold emits that the oldest messages are hidden, and reports whether there were any.
func (d *decision) fold(l *Ledger) bool {
	plan := l.planOf(l.folding(l.cache.entries)...)
	if !plan.Uses(events.StageTruncate) {
		return false
	}
	d.emitPlan(l, plan, events.ReasonEntries)
	return true
}
