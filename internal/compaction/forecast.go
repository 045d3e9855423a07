package compaction

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// A summary in the background is requested by forecast: when the history may reach its
// trigger sooner than a summary takes. Both follow from this session alone, in the time of
// its log.
// See docs/adr/0044.

const (
	// growthSteps is how many turns the forecast remembers.
	growthSteps = 32
	// burstFactor is how much faster than the fastest of them it takes the next for: a
	// few turns do not show the worst.
	burstFactor = 3
	// enoughUnused is after how many compactions that did without a prepared summary no
	// other is prepared beside it: cheap stages are enough.
	enoughUnused = 2
	// leastForecast is the time of a summary, in milliseconds, below which one is there
	// before the next turn.
	leastForecast = 1000
	// tookJobs is how many of its last summaries the forecast goes by.
	tookJobs = 3
)

// growthStep is what one turn added, and how many milliseconds it came after the one before.
type growthStep struct{ after, tokens uint32 }

// growth is what the last turns added, and when. It is a value: a fork copies it.
type growth struct {
	steps [growthSteps]growthStep // a ring
	taken uint32                  // steps so far
	last  int64                   // when the last turn came, in Unix milliseconds
}

// add notes a turn.
func (g *growth) add(now int64, tokens Tokens) {
	s := growthStep{tokens: bounded32(int64(tokens))}
	if g.taken > 0 {
		s.after = bounded32(now - g.last)
	}
	g.steps[g.taken%growthSteps] = s
	g.taken++
	g.last = now
}

func bounded32(n int64) uint32 { return uint32(min(max(n, 0), 1<<32-1)) }

// within returns how much the history may grow in so many milliseconds: what the largest
// stretch of the last turns added that is as many turns long as the fastest of them had in
// that time.
func (g *growth) within(ms int64) (most Tokens) {
	n := int(min(g.taken, growthSteps))
	at := func(i int) growthStep { return g.steps[(int(g.taken)-n+i)%growthSteps] }
	turns, passed := 0, int64(0)
	for from, to := 0, 1; to < n; to++ { // turns from+1 to to, by when they came after the one before
		passed += int64(at(to).after)
		for ; passed > ms; from++ {
			passed -= int64(at(from + 1).after)
		}
		turns = max(turns, to-from)
	}
	var sum Tokens
	for i := range n {
		sum += Tokens(at(i).tokens)
		if i >= turns {
			sum -= Tokens(at(i - turns).tokens)
		}
		most = max(most, sum)
	}
	return most
}

// rows is the form in which it is stored: pairs, the oldest first.
func (g *growth) rows() (out []uint32) {
	n := min(g.taken, growthSteps)
	for i := range n {
		s := g.steps[(g.taken-n+i)%growthSteps]
		out = append(out, s.after, s.tokens)
	}
	return out
}

// growthOf is the inverse.
func growthOf(rows []uint32, last int64) (g growth) {
	for i := 0; i+1 < len(rows) && i < 2*growthSteps; i += 2 {
		g.steps[g.taken] = growthStep{rows[i], rows[i+1]}
		g.taken++
	}
	g.last = last
	return g
}

// summaryTime is how long the next summary may take, in milliseconds: as long as the longest
// of the last ones, and by the policy before there are any.
func (l *Ledger) summaryTime() int64 {
	if len(l.took) == 0 {
		return l.cache.policy.Summarize.SummarySeconds * 1000
	}
	return slices.Max(l.took)
}

// tookTime notes how long a summary took.
func (l *Ledger) tookTime(ms int64) {
	l.took = append(slices.Clone(l.took), min(max(ms, 0), JobExpiry)) // a fork shares them
	l.took = l.took[max(0, len(l.took)-tookJobs):]
}

// forecasts reports whether summaries are requested by forecast.
func (l *Ledger) forecasts() bool { return l.cache.policy.Summarize.SummarySeconds > 0 }

// preparationDue reports whether a summary should be under way: the input has reached the
// share of the policy, or may reach the trigger before a summary that is requested now is
// there. Beside a prepared one no other is due while cheap stages do without.
func (l *Ledger) preparationDue(t policy.Thresholds, input Tokens) bool {
	switch {
	case t.Prepare >= t.Trigger:
		return false // the policy prepares none
	case l.prepared != nil && (l.prepared.Unused >= enoughUnused || !l.forecasts()):
		return false
	case input >= t.Prepare:
		return true
	default:
		return l.forecasts() && l.summaryTime() >= leastForecast && input+burstFactor*l.growth.within(l.summaryTime()) >= t.Trigger
	}
}

// A compaction breaks the cache that a provider keeps of a history: what follows the first
// message that it changes is read, and paid for, again.
// See docs/adr/0056.

// unknownPrices are those of a model without a price: a token that is written into the cache
// costs as much as eleven that are read from it.
var unknownPrices = measure.Prices{Cached: 1, Write: 11}

// cacheBreak is what a plan costs and saves by estimate, in tokens.
type cacheBreak struct {
	kept    Tokens // of the next call, in front of what changes
	again   Tokens // behind it, that the provider had read
	saved   Tokens // of each call
	turns   int64  // that are expected to gain by it
	cold    bool   // the provider has dropped it by now
	prices  measure.Prices
	unknown bool // they are no model's
}

// mean is what each of the last turns added.
func (g *growth) mean() (sum Tokens) {
	n := min(g.taken, growthSteps)
	for i := range n {
		sum += Tokens(g.steps[i].tokens)
	}
	return sum / Tokens(max(n, 1))
}

// pause is how many milliseconds came before an event, since the last call.
func (l *Ledger) pause(now int64) int64 {
	switch {
	case now != l.lastTurnAt || l.growth.taken == 0:
		return now - l.lastTurnAt
	case l.growth.taken == 1:
		return forever // there was no call before
	default:
		return int64(l.growth.steps[(l.growth.taken-1)%growthSteps].after)
	}
}

// maxTurnsAhead bounds how many turns are counted up to the trigger.
const maxTurnsAhead = 100

// turnsUntil is how many turns of the mean growth fit between an input and the trigger.
func (l *Ledger) turnsUntil(input Tokens) int64 {
	room := max(l.thresholds().Trigger-input, 0)
	return int64(min(room/max(l.usage.scaled(l.growth.mean()), 1), maxTurnsAhead))
}

// turnsAhead is how many turns are expected to gain by what is saved: as many as the history took
// to grow by it, by the last of them, and at most as many as the session has had.
func (l *Ledger) turnsAhead(saved Tokens) int64 {
	return int64(min(max(saved, 0)/max(l.usage.scaled(l.growth.mean()), 1), Tokens(l.LastTurn())))
}

// spend counts the input of a call at list prices.
func (l *Ledger) spend(u *events.Usage) {
	if !l.cache.priced {
		l.cost.Unpriced++
		return
	}
	p := l.cache.prices.For(inputOf(u))
	l.cost.Input += int64(p.Input.Times(Tokens(u.Input)) + p.Cached.Times(Tokens(u.CacheRead)) + p.Write.Times(Tokens(u.CacheCreate)))
}

// called notes the call that a turn has the answer of. Where it reports no usage, what the call before had is read
// from the provider's cache, and the rest is written into it.
func (l *Ledger) called(u *events.Usage) {
	input := l.estimated()
	read := min(l.carried, input)
	if l.carried = input; u == nil {
		l.spend(&events.Usage{CacheRead: int64(read), CacheCreate: int64(input - read)})
	}
}

// dearer is the longest input before each token of a call costs more, where the policy takes account
// of prices and the model has such a length.
func (l *Ledger) dearer() Tokens {
	long := l.cache.prices.Long
	if long == nil || l.cache.policy.Cache.Seconds == 0 || long.Cached <= l.cache.prices.Cached {
		return Tokens(forever)
	}
	return long.Over
}

// coldDue reports whether the provider has dropped its cache of a history that is above what
// its cost leaves of it: what is cleared now breaks nothing, and is not written into the cache
// again.
// See docs/adr/0054.
func (l *Ledger) coldDue(now int64) bool {
	seconds := l.cache.policy.Cache.Seconds
	if seconds == 0 || now-l.lastTurnAt <= seconds*1000 {
		return false
	}
	b := l.Budget()
	return measure.Reaches(Tokens(b.EstimatedInput)-l.lean(), Tokens(b.AvailableInput), retryShare)
}

// priced is a break of the cache of an input.
func (l *Ledger) priced(input Tokens, now int64) cacheBreak {
	b := cacheBreak{prices: l.cache.prices.For(input), unknown: !l.cache.priced, cold: l.pause(now) > l.cache.policy.Cache.Seconds*1000}
	if b.unknown {
		b.prices = unknownPrices
	}
	return b
}

// breaks returns what a plan does to the cache. The newest turn is new either way.
func (l *Ledger) breaks(p *budgeted, now int64) cacheBreak {
	before, after := l.inputs(p)
	b := l.priced(before, now)
	b.saved, b.turns = before-after, l.turnsAhead(before-after)
	var first events.Position
	for i := range p.Edits {
		if at := p.Edits[i].Position; i == 0 || at.Compare(first) < 0 {
			first = at
		}
	}
	first.Part = 0
	var rest, newest Tokens
	for i := range p.Entries {
		e := &p.Entries[i]
		if e.Compare(first) < 0 {
			continue
		}
		cost := l.cache.rate.Entry(e)
		if rest += cost; int64(e.Turn) == l.LastTurn() {
			newest += cost
		}
	}
	b.kept = max(after-l.usage.scaled(rest), 0)
	b.again = max(after-b.kept-l.usage.scaled(newest), 0)
	return b
}

// lost and gained are what the break costs, and what the turns ahead save.
func (b *cacheBreak) lost() measure.Money {
	if b.cold {
		return 0
	}
	return max(b.prices.Write-b.prices.Cached, 0).Times(b.again)
}

func (b *cacheBreak) gained() measure.Money {
	return measure.Money(b.turns) * b.prices.Cached.Times(max(b.saved, 0))
}

// report is the break as it is published.
func (b cacheBreak) report() *events.CacheBreak {
	out := &events.CacheBreak{KeptTokens: int64(b.kept), RewrittenTokens: int64(b.again), Cold: b.cold, Turns: b.turns}
	if !b.unknown {
		out.Lost, out.Saved = int64(b.lost()), int64(b.gained())
	}
	return out
}

// payBack is how often a break must be paid for: while the history grew, its calls carried half of
// what is saved now, in the mean, so that they have paid for the break once.
const payBack = 2

// pays reports whether the turns ahead pay for the break.
func (b *cacheBreak) pays() bool { return b.gained() > payBack*b.lost() }

// lean is the target of a compaction that only the cost of calls requires: that of the policy, or in
// large windows less.
func (l *Ledger) lean() Tokens {
	of, target := &l.cache.policy.Cache, l.thresholds().Target
	if of.Seconds == 0 || of.History == 0 {
		return target
	}
	return min(target, l.fixed(l.prompt())+of.History)
}

// planForCost plans for that target. Below that of the policy a prepared summary stays for the
// trigger: to use it now costs another one then.
func (l *Ledger) planForCost() budgeted {
	lean, m := l.lean(), stage.Means{}
	if lean == l.thresholds().Target {
		m.Summary = l.prepared
	}
	return l.plan(lean, m)
}

// costDue reports whether a session below its trigger is planned for the cost of its calls: they are
// expected to pay for the break of the cache, and the input has grown by a step, since a plan
// costs what is in view.
func (l *Ledger) costDue(before *Ledger, b events.Budget, now int64) bool {
	input, step := Tokens(b.EstimatedInput), max(prepareShare.Share(Tokens(b.AvailableInput)), 1)
	if before.estimated()/step == input/step {
		return false
	}
	lean := l.lean()
	if lean >= min(input, Tokens(b.TargetTokens)) {
		return false
	}
	x := l.priced(input, now)
	x.saved, x.again, x.turns = input-lean, l.cache.policy.Cache.History, l.turnsAhead(input-lean)
	return x.pays()
}

// clearForCost emits what is cleared where the cost of calls requires it, and reports whether that
// pays.
func (d *decision) clearForCost(l *Ledger) bool {
	plan := l.planForCost()
	if b := l.breaks(&plan, d.now); b.saved <= 0 || !b.pays() {
		return false
	}
	d.emitPlan(l, plan, events.ReasonCost)
	return true
}
