//go:build faults

package main

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"testing"
)

// Two runs give the same bytes. Each carries out a whole session.
func TestFaultDeterministic(t *testing.T) {
	s := scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == "example-fix-validator" })]
	var made [2][]byte
	for i := range made {
		lines, err := record(t.Context(), ".", s)
		if errors.Is(err, errNoHistory) {
			t.Skipf("SKIPPED: %v; run git fetch --unshallow", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if made[i], err = encode(lines); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("two runs differ")
	}
	shipped, err := os.ReadFile(file(s))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made[0], shipped) {
		t.Log("the shipped file differs: its commands answer otherwise on this machine, as with another version of Go")
	}
}
