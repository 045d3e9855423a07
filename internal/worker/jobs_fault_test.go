//go:build faults

package worker_test

import (
	"time"

	"compactd/internal/worker/jobs"
)

// Jobs wait for failing models once here, and not for the minutes of a lane: TestFaultOutages
// has twenty ways to fail.
func init() { jobs.ShortenWaits(time.Millisecond) }
