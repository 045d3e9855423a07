//go:build faults

package jobs

import "time"

// ShortenWaits limits the wait of jobs for their models, for the fault tests: one test makes models
// fail in twenty ways, and would wait for minutes in each.
func ShortenWaits(longest time.Duration) {
	for lane, t := range laneTerms {
		t.maxWait = min(t.maxWait, longest)
		laneTerms[lane] = t
	}
}
