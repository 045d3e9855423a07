//go:build faults

package compaction_test

import "testing"

// TestFaultAdopted adopts histories at every message of every real session. It takes a minute.
func TestFaultAdopted(t *testing.T) { testAdopted(t, 1) }

// TestFaultGoldenSplit splits the golden logs in many more ways than TestGoldenSplit.
func TestFaultGoldenSplit(t *testing.T) { testGoldenSplit(t, 1000) }

// TestFaultNothingPinned reads all real sessions.
func TestFaultNothingPinned(t *testing.T) { nothingPinned(t, realSessions(t)) }

// TestFaultStrictProvider sends real sessions at more windows. It takes two minutes.
func TestFaultStrictProvider(t *testing.T) { strictProvider(t, 8_000, 20_000, 200_000) }
