//go:build faults

package compaction_test

import "testing"

// P24: the same as TestLinear, for all conversations.
func TestFaultLinear(t *testing.T) { testLinear(t, 1) }
