//go:build faults

package jobs

import "time"

// ShortenWaits bounds how long jobs wait for their models, for the fault tests: one test has
// twenty ways for a model to fail, and would wait for minutes in each.
func ShortenWaits(longest time.Duration) {
	for lane, t := range laneTerms {
		t.maxWait = min(t.maxWait, longest)
		laneTerms[lane] = t
	}
}
