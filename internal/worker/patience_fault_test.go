//go:build faults

package worker

import "time"

// Models that fail are waited for once here, and not for the minutes that a lane has
// patience: TestFaultOutages has twenty ways to fail.
func init() {
	for lane, t := range lanes {
		t.patience = min(t.patience, time.Millisecond)
		lanes[lane] = t
	}
}
