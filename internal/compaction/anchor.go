package compaction

import "compactd/internal/events"

// floorShare is the least share of our own estimate that any usage leaves of it,
// so that a false usage cannot switch compaction off.
const floorShare PPM = 350_000

// anchor corrects the estimate by what the provider counted for a call: its input
// is exact for the view the agent had at its generation. What is estimated from
// then on is only what follows. at is our estimate of the same input under the
// view of now; what later compactions saved was still in it. No call can have
// taken more than the window, whatever its usage says.
func (l *Ledger) anchor(u *events.Usage, generation int64, at Tokens) {
	input := min(Tokens(u.Input+u.CacheRead+u.CacheCreate), l.gauge.window)
	if input == 0 || generation > l.Generation() {
		return // an agent cannot have applied what was not told
	}
	for _, g := range l.generations[generation:] {
		at += g.Saved
	}
	l.correction = input - at
}

// corrected is an estimate with the last anchor applied.
func (l *Ledger) corrected(estimate Tokens) Tokens {
	return max(estimate+l.correction, floorShare.share(estimate))
}

// input is what the next call takes with a history of so many tokens.
func (l *Ledger) input(history Tokens) Tokens {
	return l.corrected(l.prompt().Total() - l.gauge.visible + history)
}

// room is the largest history with which the next call takes at most total: the
// inverse of input.
func (l *Ledger) room(total Tokens) Tokens {
	fixed := l.prompt().Total() - l.gauge.visible // system, tools and framing: no stage reduces them
	return min(total-l.correction, total*million/Tokens(floorShare)) - fixed
}

// rescale keeps the correction in proportion when turns are withdrawn, since it
// was counted for what they said too. before is the estimate until then.
func (l *Ledger) rescale(before Tokens) {
	if before > 0 {
		l.correction = PPM(min(l.prompt().Total()*million/before, million)).share(l.correction)
	}
}
