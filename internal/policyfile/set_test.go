package policyfile

import (
	"slices"
	"testing"

	"compactd/internal/compaction/policy"
)

// Fields set over a policy keep the others, and no session sets them; wrong ones are reported.
func TestSet(t *testing.T) {
	p, _ := policy.Preset("default")
	p.Target, p.Locked = 400_000, []string{"recall"}
	got, err := Set(p, []string{"threshold=0.7", "prune.enabled=false"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Threshold != 700_000 || got.Prune.Enabled || got.Target != 400_000 {
		t.Errorf("got %v, %v, %v", got.Threshold, got.Prune.Enabled, got.Target)
	}
	if want := []string{"prune.enabled", "recall", "threshold"}; !slices.Equal(slices.Sorted(slices.Values(got.Locked)), want) {
		t.Errorf("locked %v, want %v", got.Locked, want)
	}
	for _, wrong := range []string{"target=0.9", "treshold=0.7", "target"} {
		if _, err := Set(p, []string{wrong}); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}
