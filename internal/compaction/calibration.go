package compaction

import (
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// The one ratio that the usages of a session correct.
const (
	// Its bounds.
	leastRatio PPM = 500_000
	mostRatio  PPM = 2_500_000

	// trust is how many tokens at a ratio of 1 the usages of a session are weighed
	// against, so that the first few calls do not swing it.
	trust Tokens = 20_000
	// hysteresis is the least change of the ratio, as a share of it: a ratio that
	// moved with every call would move the trigger too.
	hysteresis PPM = 50_000
	// memory is how many estimated tokens are learned from before what was learned
	// counts half.
	memory Tokens = 1_000_000
)

// calibration is what the usages of a session teach about our estimates: input =
// ratio × estimate + correction, exact at the last anchor.
type calibration struct {
	Ratio      PPM    `json:"ratio"` // 0 as long as it is 1
	Correction Tokens `json:"correction"`
	Least      PPM    `json:"least"` // share of an estimate that is left of it, whatever the usages

	// The last anchor: input by the provider, estimate by us, in the view of a
	// generation. Input is 0 when nothing can be learned from the next one.
	Input      Tokens `json:"input"`
	Estimate   Tokens `json:"estimate"`
	Generation int64  `json:"generation"`

	// What calls had grown by from one anchor to the next, by both.
	Counted   Tokens `json:"counted"`
	Estimated Tokens `json:"estimated"`
}

// anchor corrects the estimate by what the provider counted for a call: its input
// is exact for the view the agent had at its generation. What is estimated from
// then on is only what follows. at is our estimate of the same input under the
// view of now; what later compactions saved was still in it. No call can have
// taken more than the window, whatever its usage.
func (l *Ledger) anchor(u *events.Usage, generation int64, at Tokens) {
	input := min(Tokens(u.Input+u.CacheRead+u.CacheCreate), l.cache.window)
	if input == 0 || generation > l.Generation() {
		return // an agent cannot have applied what was not published
	}
	if generation == l.Generation() && l.cache.rate.Classes {
		l.usage.learn(input, at, generation)
	}
	for _, g := range l.generations[generation:] {
		input -= g.Saved
	}
	l.usage.Correction = input - l.usage.scaled(at)
}

// learn compares what the input has grown by since the last anchor of the same
// view with our estimate of it. No call teaches more than the bounds of the ratio,
// since a provider also counts what the agent never published; so the ratio, a mean of
// what was taught, stays within them.
func (c *calibration) learn(input, at Tokens, generation int64) {
	if grown := at - c.Estimate; c.Input > 0 && c.Generation == generation && grown > 0 {
		c.Counted += min(max(input-c.Input, leastRatio.Share(grown)), mostRatio.Share(grown))
		c.Estimated += grown
		if c.Estimated > memory {
			c.Counted, c.Estimated = c.Counted/2, c.Estimated/2
		}
		c.moveRatio(PPM((trust + c.Counted) * measure.Million / (trust + c.Estimated)))
	}
	c.Input, c.Estimate, c.Generation = input, at, generation
}

// moveRatio sets the ratio, unless it changes by too little.
func (c *calibration) moveRatio(ratio PPM) {
	old := c.ratio()
	if change := ratio - old; max(change, -change) >= PPM(hysteresis.Share(Tokens(old))) {
		c.Ratio = ratio
	}
}

func (c *calibration) ratio() PPM {
	if c.Ratio == 0 {
		return measure.Million
	}
	return c.Ratio
}

// dropAnchor drops the last anchor: what the next one counts is another history.
func (c *calibration) dropAnchor() { c.Input = 0 }

// scaled is an estimate at the ratio, rounded up.
func (c *calibration) scaled(estimate Tokens) Tokens { return c.ratio().Ceil(estimate) }

// unscaled is the largest estimate that is at most t at the ratio.
func (c *calibration) unscaled(t Tokens) Tokens {
	return measure.FloorDiv(t*measure.Million, Tokens(c.ratio()))
}

// corrected is an estimate of a whole input, corrected by the usages.
func (l *Ledger) corrected(estimate Tokens) Tokens {
	return max(l.usage.scaled(estimate)+l.usage.Correction, l.usage.Least.Ceil(estimate))
}

// floor sets the least share of our estimate that any usage leaves of it: a token
// for each 8 bytes in view, so that a false usage cannot switch compaction off. It
// moves with turns only: until the next one, a plan takes the same share of what
// it leaves, and what was emitted about it stays true.
func (l *Ledger) floor() {
	g := &l.cache
	if estimate := int64(l.prompt().Total()); estimate > 0 {
		bytes := g.bytes + l.system.Bytes + l.tools.Bytes
		l.usage.Least = PPM(min(measure.CeilDiv(measure.CeilDiv(bytes, measure.FloorBytes)*measure.Million, estimate), measure.Million))
	}
}

// input is what the next call takes with a history of so many tokens.
func (l *Ledger) input(history Tokens) Tokens {
	return l.corrected(l.prompt().Total() - l.cache.visible + history)
}

// availableFor is the largest history with which the next call takes at most total: the
// inverse of input.
func (l *Ledger) availableFor(total Tokens) Tokens {
	fixed := l.prompt().Total() - l.cache.visible // system, tools and framing: no stage reduces them
	most := l.usage.unscaled(total - l.usage.Correction)
	if least := l.usage.Least; least > 0 {
		most = min(most, measure.FloorDiv(total*measure.Million, Tokens(least)))
	}
	return most - fixed
}

// rescale keeps the correction in proportion when turns are retracted, since it was
// counted for their content too. before is the estimate until then.
func (l *Ledger) rescale(before Tokens) {
	l.usage.dropAnchor()
	if before > 0 {
		l.usage.Correction = PPM(min(l.prompt().Total()*measure.Million/before, measure.Million)).Share(l.usage.Correction)
	}
}
