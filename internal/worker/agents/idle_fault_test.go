//go:build faults

package agents_test

import (
	"testing"
)

// P23: the same as TestAgentsIdleReaders, with ten times as many.
func TestFaultAgentsIdleReaders(t *testing.T) { idleReaders(t, 10_000) }
