//go:build faults

package scenarios_test

import (
	"testing"
)

// P24: the same as TestRequestsLinear, for requests of all kinds.
func TestFaultRequestsLinear(t *testing.T) { testRequestsLinear(t, 1) }
