package policyfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Policies that were written elsewhere take the place of those of the file, over the worker's policy and its locks. A
// wrong one is left out with each problem and its line, and without any of them the config is that of the file.
func TestWithTenants(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("target: 0.5\nlocked: [prune]\ntenants:\n  acme:\n    target: 0.4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(Options{Policy: file})
	if err != nil {
		t.Fatal(err)
	}
	next, wrong, err := s.WithTenants(map[string][]byte{
		"acme": []byte("info: 0.7 # of its own"), "beta": []byte("preset: claude"), "bad": []byte("target: 0.9\nprun: 1\n"), "text": []byte("a"),
	})
	if err != nil || len(wrong) != 2 {
		t.Fatal(err, wrong)
	}
	if got := wrong["bad"].Error(); !strings.Contains(got, "policy of bad:1: target must be below threshold") || !strings.Contains(got, "policy of bad:2: prun is not known; did you mean prune?") {
		t.Error(got)
	}
	acme, beta := next.Config.For("acme"), next.Config.For("beta")
	if acme.Target != 500_000 || acme.Info != 700_000 || !slices.Contains(acme.Locked, "prune.enabled") || beta.TriggerMode != "buffer" {
		t.Errorf("acme %+v\nbeta %+v", acme, beta)
	}
	if next.Config.For("bad").Target != 500_000 || s.Config.For("acme").Target != 400_000 {
		t.Error("a wrong policy counts, or the settings changed")
	}
	if same, _, err := s.WithTenants(nil); err != nil || same.Config.Hash() != s.Config.Hash() {
		t.Errorf("%v: %s, not %s", err, same.Config.Hash(), s.Config.Hash())
	}
}
