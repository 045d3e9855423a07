//go:build faults

package partition

import "testing"

// P10: the same as TestSimulation, ten times as often.
func TestFaultSimulation(t *testing.T) { simulate(t, max(*seeds, 25_000)) }

// The same, ten times as many again.
func TestSoakSimulation(t *testing.T) { simulate(t, max(*seeds, 250_000)) }

// The same as TestSyncSimulation, 48 times as often.
func TestFaultSyncSimulation(t *testing.T) { simulateSyncs(t, max(*seeds, 24_000)) }
