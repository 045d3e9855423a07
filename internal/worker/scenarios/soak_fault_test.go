//go:build faults

package scenarios_test

import (
	"os"
	"testing"
	"time"
)

// soakTime is how long a loop of the soak tests runs: the duration in SOAK, 30 minutes without
// it.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	s := os.Getenv("SOAK")
	if s == "" {
		return 30 * time.Minute
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("SOAK=%q is no duration such as 30m: %v", s, err)
	}
	return d
}
