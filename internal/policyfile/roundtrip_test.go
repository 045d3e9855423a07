package policyfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"compactd/internal/stored"
)

// A printed policy is a file with the same meaning, for the worker and for a
// tenant: each value of a policy can be written and read.
func TestPrintedIsReadBack(t *testing.T) {
	for _, text := range []string{
		"preset: claude",
		"preset: neurolink\nprune: {protected_tools: [], micro: {tools: ['a: b', \"#\", ünïcode]}}\nwindows: {'@cf': {'a/b.c:1': 64000}}",
		"tenants: {acme: {preset: claude, threshold_cap: 0.123456}}",
		"locked: [summarize, threshold]\ntenants: {acme: {preset: claude, locked: [prune.micro]}}",
	} {
		s, err := parse("a.yaml", []byte(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tenant := range []string{"", "acme"} {
			var b strings.Builder
			if err := s.Write(&b, tenant); err != nil {
				t.Fatal(err)
			}
			again, err := parse("b.yaml", []byte(b.String()), Options{})
			if err != nil {
				t.Fatalf("%s\n%v", b.String(), err)
			}
			want := s.Report(tenant)
			if d := gocmp.Diff(want.Policy, again.Config.Policy); d != "" {
				t.Error(d)
			}
			if d := gocmp.Diff(want.Windows, again.windows); d != "" {
				t.Error(d)
			}
		}
	}
}

// The text of a config holds tenants and windows (A13), and gives the same config
// again.
func TestConfigText(t *testing.T) {
	hashes := map[string]string{}
	for _, text := range []string{
		"", "target: 0.5", "tenants: {acme: {target: 0.5}}", "tenants: {acme: {}}", "windows: {openai: {gpt-5: 272000}}", "window_tokens: 8000",
		"locked: [summarize.enabled]", "tenants: {acme: {locked: [summarize.enabled]}}",
	} {
		s, err := parse("a.yaml", []byte(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := hashes[s.Config.Hash()]; ok {
			t.Errorf("%q and %q have one hash", text, other)
		}
		hashes[s.Config.Hash()] = text
		again, err := stored.ReadConfig(s.Config.Text())
		if err != nil {
			t.Fatal(err)
		}
		if again.Hash() != s.Config.Hash() {
			t.Errorf("%q: %s, read back %s", text, s.Config.Hash(), again.Hash())
		}
		if d := gocmp.Diff(s.Config.For("acme"), again.For("acme")); d != "" {
			t.Error(d)
		}
		if d := gocmp.Diff(s.Config.Windows, again.Windows); d != "" {
			t.Error(d)
		}
	}
}

// A file is read from where it is named, within bounds.
func TestLoadFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(name, []byte("target: 0.5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(Options{Policy: name})
	if err != nil || s.Config.Policy.Target != 500_000 {
		t.Errorf("got %v, %v", s, err)
	}
	if err := os.WriteFile(name, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Options{Policy: name}); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
	if _, err := Load(Options{Policy: filepath.Dir(name)}); err == nil {
		t.Error("a directory was read")
	}
}

// Whatever is in a file, reading it gives settings or an error, and what is
// taken over validates.
func FuzzParse(f *testing.F) {
	f.Add("threshold: 0.7", "target=0.5")
	f.Add("preset: claude\ntenants: {a: {preset: default}}\nwindows: {openai: {gpt-5: 272000}}", "prune.micro.tools=[x]")
	f.Add("? a\n: b", "a.b=&x 1")
	f.Fuzz(func(t *testing.T, text, set string) {
		s, err := parse("a.yaml", []byte(text), Options{Set: []string{set}})
		if err == nil && s.Config.Policy.Validate() != nil {
			t.Errorf("%q: %v", text, s.Config.Policy.Validate())
		}
	})
}
