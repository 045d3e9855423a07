package compaction

import (
	"slices"

	"compactd/internal/events"
)

// MicroPolicy is the policy of micro-compaction: the first step of prune, which
// clears old results of some tools whatever their size.
type MicroPolicy struct {
	Enabled bool `json:"enabled"`
	// From FromMessages messages on, results outside the newest KeepMessages are
	// cleared.
	FromMessages int64 `json:"from_messages"`
	KeepMessages int64 `json:"keep_messages"`
	// Tools are those whose results are cleared, by exact name.
	Tools []string `json:"tools"`
	// EveryTurn clears after each turn, not at the trigger only. It breaks the
	// provider's cache each time.
	EveryTurn bool `json:"every_turn"`
	// After IdleMinutes without a turn the provider's cache is cold, and all but
	// the newest IdleKeep of these results are cleared; 0 minutes never does.
	IdleMinutes int64 `json:"idle_minutes"`
	IdleKeep    int64 `json:"idle_keep"`
}

func (p *MicroPolicy) validate(check func(ok bool, format string, args ...any)) {
	check(0 <= p.FromMessages && p.FromMessages <= events.MaxNumber, "prune.micro.from_messages must be between 0 and %d", int64(events.MaxNumber))
	check(0 < p.KeepMessages && p.KeepMessages <= events.MaxNumber, "prune.micro.keep_messages must be between 1 and %d", int64(events.MaxNumber))
	check(0 <= p.IdleMinutes && p.IdleMinutes <= 1<<31, "prune.micro.idle_minutes must be between 0 and %d", 1<<31)
	check(0 <= p.IdleKeep && p.IdleKeep <= events.MaxNumber, "prune.micro.idle_keep must be between 0 and %d", int64(events.MaxNumber))
}

func (p *PrunePolicy) everyTurn() bool { return p.Enabled && p.Micro.Enabled && p.Micro.EveryTurn }

// Idle reports whether a session has been silent for so long that a session.idle
// is due under a config. now is in Unix milliseconds of the log.
func (l *Ledger) Idle(now int64, c *Config) bool {
	l.use(c)
	p := l.cache.policy
	after := p.Prune.Micro.IdleMinutes * 60_000
	return p.Enabled && p.Prune.Enabled && p.Prune.Micro.Enabled && after > 0 &&
		l.LastTurn() > 0 && !l.idleHandled && now-l.lastTurnAt >= after
}

// Spoke is the sequence of the last turn, by which two events that tell of one
// silence are known as the same.
func (l *Ledger) LastTurnSeq() Seq { return Seq(l.through().Seq) }

// ClearOld clears the results of the policy's tools outside the newest messages,
// and reports whether there were any. Results that the agent has not answered yet
// stay, and so does a read that the placeholder of another points to.
func (d *Draft) ClearOld(p *MicroPolicy) bool {
	if !p.Enabled || int64(d.messages()) < p.FromMessages {
		return false
	}
	newest := d.newest(int(p.KeepMessages))
	old := d.results(p.Tools)
	return d.clearEach(slices.DeleteFunc(old, func(i int) bool { return i >= newest }))
}

// ClearIdle clears the results of the policy's tools but the newest few, and
// reports whether there were any. It is for a session whose cache is cold; what
// stays under [Draft.ClearOld] whatever its age stays here too.
func (d *Draft) ClearIdle(p *MicroPolicy) bool {
	if !p.Enabled || p.IdleMinutes == 0 {
		return false
	}
	old := d.results(p.Tools)
	return d.clearEach(old[:max(int64(len(old))-p.IdleKeep, 0)])
}

// results lists the results of tools that still have their content, oldest first.
func (d *Draft) results(tools []string) []int {
	var out []int
	keys := make([]Key, len(tools))
	for i, t := range tools {
		keys[i] = KeyOf(t)
	}
	for i := range d.entries {
		if e := &d.entries[i]; e.whole() && slices.Contains(keys, e.Tool) {
			out = append(out, i)
		}
	}
	return out
}

// clearEach clears results, except those that must stay and those whose
// placeholder would cost as much.
func (d *Draft) clearEach(results []int) (cleared bool) {
	referred := d.referred()
	unread := len(d.entries)
	for unread > 0 && d.entries[unread-1].Role != RoleAssistant {
		unread--
	}
	results = slices.DeleteFunc(results, func(i int) bool {
		return i >= unread || referred[i] || d.saving(i, events.OpClearOld) <= 0
	})
	d.edit(events.OpClearOld, results)
	return len(results) > 0
}

// clear tells what one of the two forms above clears, and reports whether that
// made the input smaller.
func (d *decision) clear(l *Ledger, reason events.Reason, form func(*Draft, *MicroPolicy) bool) bool {
	g := &l.cache
	plan := ClearPlan(l.visible(), l.format, g.rate, func(x *Draft) { form(x, &g.policy.Prune.Micro) })
	if l.input(plan.After) >= l.input(plan.Before) { // by the provider's count, which need not agree with ours
		return false
	}
	d.emitPlan(l, budgeted{plan, l.availableFor(g.thresholds.target), g.thresholds.target}, reason)
	return true
}
