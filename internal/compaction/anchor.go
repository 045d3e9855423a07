package compaction

import "compactd/internal/events"

// floorShare is the least share of our own estimate that any usage leaves of it,
// so that a false usage cannot switch compaction off.
const floorShare PPM = 350_000

// anchor corrects the estimate by what the provider counted for a call: its input
// is exact for the view the agent had at its generation. What is estimated from
// then on is only what follows. at is our estimate of the same input under the
// view of now; what later compactions saved was still in it.
func (l *Ledger) anchor(u *events.Usage, generation int64, at Tokens) {
	input := Tokens(u.Input + u.CacheRead + u.CacheCreate)
	if input == 0 || generation > l.generation {
		return // an agent cannot have applied what was not told
	}
	for g := generation; g < l.generation; g++ {
		at += l.saved[g]
	}
	l.correction = input - at
}

// corrected is an estimate with the last anchor applied.
func (l *Ledger) corrected(estimate Tokens) Tokens {
	return max(estimate+l.correction, floorShare.share(estimate))
}
