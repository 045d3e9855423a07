//go:build faults

package worker

import "time"

// Models that fail are waited for once here, and not for the minutes that a lane has
// patience: TestFaultOutages has twenty ways to fail.
func init() {
	for lane, t := range laneTerms {
		t.maxWait = min(t.maxWait, time.Millisecond)
		laneTerms[lane] = t
	}
}
