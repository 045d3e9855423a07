package compaction

import "slices"

// A summary in the background is requested by forecast: when the history may reach its
// trigger sooner than a summary takes. Both follow from this session alone, in the time of
// its log.
// See docs/adr/0044.

const (
	// growthSteps is how many turns the forecast remembers.
	growthSteps = 32
	// burstFactor is how much faster than the fastest of them it takes the next for: a
	// few turns do not show the worst.
	burstFactor = 2
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
	l.took = append(slices.Clone(l.took), min(max(ms, 0), jobExpiry)) // a fork shares them
	l.took = l.took[max(0, len(l.took)-tookJobs):]
}

// forecasts reports whether summaries are requested by forecast.
func (l *Ledger) forecasts() bool { return l.cache.policy.Summarize.SummarySeconds > 0 }

// preparationDue reports whether a summary should be under way: the input has reached the
// share of the policy, or may reach the trigger before a summary that is requested now is
// there. Beside a prepared one no other is due while cheap stages do without.
func (l *Ledger) preparationDue(input Tokens) bool {
	t := &l.cache.thresholds
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
