//go:build faults

package scenarios_test

import (
	"time"

	"compactd/internal/worker/jobs"
)

// Jobs whose model fails are retried at once here, not after the minutes of a lane:
// TestFaultOutages has twenty failing models.
func init() { jobs.ShortenWaits(time.Millisecond) }
