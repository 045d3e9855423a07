package compaction

import (
	"slices"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
)

// A summary in the background is requested by forecast: when the history may reach its trigger before a
// summary would be ready. Both times come from this session alone, in the time of its log.
// See docs/adr/0044.

const (
	// growthSteps is the number of turns that the forecast remembers.
	growthSteps = 32
	// burstFactor is the speed of the expected turns over the fastest remembered ones: a few turns do not
	// show the worst case.
	burstFactor = 3
	// enoughUnused is the number of compactions without use of the prepared summary after which no other is
	// prepared beside it: cheap stages are enough.
	enoughUnused = 2
	// leastForecast is the shortest time of a summary to forecast by, in milliseconds: a faster summary is
	// ready before the next turn.
	leastForecast = 1000
	// tookJobs is the number of last summaries whose times the forecast uses.
	tookJobs = 3
)

// growthStep is the growth by one turn, and the milliseconds since the turn before.
type growthStep struct{ after, tokens uint32 }

// growth has the last turns' sizes and times. It is a value: a fork copies it.
type growth struct {
	steps [growthSteps]growthStep // a ring
	taken uint32                  // steps so far
	last  int64                   // when the last turn came, in Unix milliseconds
}

// add notes a turn.
func (g *growth) add(now int64, tokens measure.Tokens) {
	s := growthStep{tokens: bounded32(int64(tokens))}
	if g.taken > 0 {
		s.after = bounded32(now - g.last)
	}
	g.steps[g.taken%growthSteps] = s
	g.taken++
	g.last = now
}

func bounded32(n int64) uint32 { return uint32(min(max(n, 0), 1<<32-1)) }

// within returns the possible growth of the history in so many milliseconds. From the fastest stretch of
// turns it takes the number of turns in that time, and returns the largest growth by as many turns in a row.
func (g *growth) within(ms int64) (most measure.Tokens) {
	n := int(min(g.taken, growthSteps))
	at := func(i int) growthStep { return g.steps[(int(g.taken)-n+i)%growthSteps] }
	turns, passed := 0, int64(0)
	for from, to := 0, 1; to < n; to++ { // turns from+1 to to, by the times between them
		passed += int64(at(to).after)
		for ; passed > ms; from++ {
			passed -= int64(at(from + 1).after)
		}
		turns = max(turns, to-from)
	}
	var sum measure.Tokens
	for i := range n {
		sum += measure.Tokens(at(i).tokens)
		if i >= turns {
			sum -= measure.Tokens(at(i - turns).tokens)
		}
		most = max(most, sum)
	}
	return most
}

// rows is the stored form: pairs, the oldest first.
func (g *growth) rows() (out []uint32) {
	n := min(g.taken, growthSteps)
	for i := range n {
		s := g.steps[(g.taken-n+i)%growthSteps]
		out = append(out, s.after, s.tokens)
	}
	return out
}

// growthOf is the inverse of rows.
func growthOf(rows []uint32, last int64) (g growth) {
	for i := 0; i+1 < len(rows) && i < 2*growthSteps; i += 2 {
		g.steps[g.taken] = growthStep{rows[i], rows[i+1]}
		g.taken++
	}
	g.last = last
	return g
}

// summaryTime is the expected time of the next summary, in milliseconds: the longest of the last ones, or the
// policy's before the first.
func (l *Ledger) summaryTime() int64 {
	if len(l.took) == 0 {
		return l.cache.policy.Summarize.SummarySeconds * 1000
	}
	return slices.Max(l.took)
}

// tookTime notes the duration of a summary.
func (l *Ledger) tookTime(ms int64) {
	l.took = append(slices.Clone(l.took), min(max(ms, 0), JobExpiry)) // a fork shares them
	l.took = l.took[max(0, len(l.took)-tookJobs):]
}

// forecasts reports whether summaries are requested by forecast.
func (l *Ledger) forecasts() bool { return l.cache.policy.Summarize.SummarySeconds > 0 }

// preparationDue reports whether a summary should be under way: the input has reached the policy's share, or
// may reach the trigger before a summary requested now is ready. While cheap stages are enough, no second
// summary is due beside a prepared one.
func (l *Ledger) preparationDue(t policy.Thresholds, input measure.Tokens) bool {
	switch {
	case t.Prepare >= t.Trigger:
		return false // the policy prepares no summary
	case l.prepared != nil && (l.prepared.Unused >= enoughUnused || !l.forecasts()):
		return false
	case input >= t.Prepare:
		return true
	default:
		return l.forecasts() && l.summaryTime() >= leastForecast && input+burstFactor*l.growth.within(l.summaryTime()) >= t.Trigger
	}
}

// A compaction breaks the provider's cache of a history: content after the first changed message is read, and
// paid for, again.
// See docs/adr/0056.

// unknownPrices are for a model without a price: writing a token into the cache costs eleven times as much as
// reading it.
var unknownPrices = measure.Prices{Cached: 1, Write: 11}

// cacheBreak has the estimated cost and saving of a plan, in tokens.
type cacheBreak struct {
	kept    measure.Tokens // of the next call, before the first change
	again   measure.Tokens // after it, and read by the provider before
	saved   measure.Tokens // of each call
	turns   int64          // that are expected to benefit
	cold    bool           // the provider has dropped its cache
	prices  measure.Prices
	unknown bool // prices are not the model's
}

// mean is the mean growth by one of the last turns.
func (g *growth) mean() (sum measure.Tokens) {
	n := min(g.taken, growthSteps)
	for i := range n {
		sum += measure.Tokens(g.steps[i].tokens)
	}
	return sum / measure.Tokens(max(n, 1))
}

// pause is the time before an event since the last call, in milliseconds.
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

// maxTurnsAhead bounds the counted turns up to the trigger.
const maxTurnsAhead = 100

// turnsUntil is the number of turns of mean growth between an input and the trigger.
func (l *Ledger) turnsUntil(input measure.Tokens) int64 {
	room := max(l.thresholds().Trigger-input, 0)
	return int64(min(room/max(l.usage.scaled(l.growth.mean()), 1), maxTurnsAhead))
}

// turnsAhead is the expected number of turns that benefit from a saving: the turns in which the history grows
// by as much, at its mean growth, but at most as many as the session has had.
func (l *Ledger) turnsAhead(saved measure.Tokens) int64 {
	return int64(min(max(saved, 0)/max(l.usage.scaled(l.growth.mean()), 1), measure.Tokens(l.LastTurn())))
}

// spend counts the input of a call at list prices.
func (l *Ledger) spend(u *events.Usage) {
	if !l.cache.priced {
		l.cost.Unpriced++
		return
	}
	p := l.cache.prices.For(inputOf(u))
	l.cost.Input += int64(p.Input.Times(measure.Tokens(u.Input)) + p.Cached.Times(measure.Tokens(u.CacheRead)) + p.Write.Times(measure.Tokens(u.CacheCreate)))
}

// called notes the call whose answer a turn has. If it has no usage, or a false one, the content of the call before
// counts as read from the provider's cache, and the rest as written into it. No call costs more than one of the
// largest window.
func (l *Ledger) called(u *events.Usage) {
	input := min(l.estimated(), l.cache.largest)
	read := min(l.carried, input)
	if l.carried = input; u == nil || l.isFalse(u) {
		l.spend(&events.Usage{CacheRead: int64(read), CacheCreate: int64(input - read)})
	}
}

// dearer is the longest input before the model's higher prices apply, if the policy takes account of prices
// and the model has such prices.
func (l *Ledger) dearer() measure.Tokens {
	long := l.cache.prices.Long
	if long == nil || l.cache.policy.Cache.Seconds == 0 || long.Cached <= l.cache.prices.Cached {
		return measure.Tokens(forever)
	}
	return long.Over
}

// coldDue reports whether the provider has dropped its cache of a history above its cost target. Clearing now
// breaks no cache, and the cleared content is not written into it again.
// See docs/adr/0054.
func (l *Ledger) coldDue(now int64) bool {
	seconds := l.cache.policy.Cache.Seconds
	if seconds == 0 || now-l.lastTurnAt <= seconds*1000 {
		return false
	}
	b := l.Budget()
	return measure.Reaches(measure.Tokens(b.EstimatedInput)-l.lean(), measure.Tokens(b.AvailableInput), retryShare)
}

// priced returns an empty break of the cache at the prices of an input.
func (l *Ledger) priced(input measure.Tokens, now int64) cacheBreak {
	b := cacheBreak{prices: l.cache.prices.For(input), unknown: !l.cache.priced, cold: l.pause(now) > l.cache.policy.Cache.Seconds*1000}
	if b.unknown {
		b.prices = unknownPrices
	}
	return b
}

// breaks returns the effect of a plan on the cache. The newest turn is new in any case.
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
	var rest, newest measure.Tokens
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

// lost is the cost of the break, gained the saving of the turns ahead.
func (b *cacheBreak) lost() measure.Money {
	if b.cold {
		return 0
	}
	return max(b.prices.Write-b.prices.Cached, 0).Times(b.again)
}

func (b *cacheBreak) gained() measure.Money {
	return measure.Money(b.turns) * b.prices.Cached.Times(max(b.saved, 0))
}

// report is the break in its published form.
func (b cacheBreak) report() *events.CacheBreak {
	out := &events.CacheBreak{KeptTokens: int64(b.kept), RewrittenTokens: int64(b.again), Cold: b.cold, Turns: b.turns}
	if !b.unknown {
		out.Lost, out.Saved = int64(b.lost()), int64(b.gained())
	}
	return out
}

// payBack is the factor by which the gain must exceed the cost of a break. While the history grew, its calls
// carried half of the saving on average, so they have paid for the break once.
const payBack = 2

// pays reports whether the turns ahead pay for the break.
func (b *cacheBreak) pays() bool { return b.gained() > payBack*b.lost() }

// lean is the target of a compaction for the cost of calls: that of the policy, or less in large windows.
func (l *Ledger) lean() measure.Tokens {
	of, target := &l.cache.policy.Cache, l.thresholds().Target
	if of.Seconds == 0 || of.History == 0 {
		return target
	}
	return min(target, l.fixed(l.prompt())+of.History)
}

// planForCost plans for that target. Below the policy's target a prepared summary is kept for the trigger:
// using it now would cost another one then.
func (l *Ledger) planForCost() budgeted {
	lean, m := l.lean(), stage.Means{}
	if lean == l.thresholds().Target {
		m.Summary = l.prepared
	}
	return l.plan(lean, m)
}

// costDue reports whether to plan a session below its trigger for the cost of its calls: the turns ahead are
// expected to pay for the break of the cache, and the input has grown by a step, since a plan reads the whole
// view.
func (l *Ledger) costDue(before *Ledger, b events.Budget, now int64) bool {
	input, step := measure.Tokens(b.EstimatedInput), max(prepareShare.Share(measure.Tokens(b.AvailableInput)), 1)
	if before.estimated()/step == input/step {
		return false
	}
	lean := l.lean()
	if lean >= min(input, measure.Tokens(b.TargetTokens)) {
		return false
	}
	x := l.priced(input, now)
	x.saved, x.again, x.turns = input-lean, l.cache.policy.Cache.History, l.turnsAhead(input-lean)
	return x.pays()
}

// clearForCost emits a plan for the cost of calls, and reports whether one pays.
func (d *decision) clearForCost(l *Ledger) bool {
	plan := l.planForCost()
	if b := l.breaks(&plan, d.now); b.saved <= 0 || !b.pays() {
		return false
	}
	d.emitPlan(l, plan, events.ReasonCost)
	return true
}
