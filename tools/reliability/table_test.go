package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/testkit/figures"
)

const root = "../.."

// A figure that a test printed stands beside it, whether it is enough or not; a test that printed
// nothing is missing, and one that could not run is skipped.
func TestTable(t *testing.T) {
	printed, err := Read(strings.NewReader(`=== RUN   TestKills
reliability P1 test=TestKills kills=3 lost=0
reliability P1 test=TestKills kills=7 lost=0
    worker_test.go:7: reliability is not a line of figures
reliability P1 test=TestFew kills=7 lost=1
reliability P2 test=TestPower skipped=needs_root
ok  	compactd/internal/worker	1.2s
`))
	if err != nil {
		t.Fatal(err)
	}
	got, missed, err := Table([]Promise{
		{Row: "P1", Text: "nothing is lost", Shown: []Shown{
			{Test: "TestKills", Tier: "B", Demands: []string{"kills>=7", "lost=0"}},
			{Test: "TestFew", Tier: "C", Demands: []string{"kills>7", "lost<=1"}},
			{Test: "TestNever", Tier: "C", Demands: []string{"kills>7"}},
		}},
		{Row: "P2", Text: "nor then", Shown: []Shown{{Test: "TestPower", Tier: "B", Demands: []string{"lost=0"}}}},
	}, printed)
	if err != nil || missed != 3 {
		t.Errorf("%d missed, %v", missed, err)
	}
	want := strings.ReplaceAll(`- **P1**: nothing is lost
  - ´TestKills´ (B, met, demanded ´kills>=7´ ´lost=0´): kills=7 lost=0
  - ´TestFew´ (C, **missed**, demanded ´kills>7´ ´lost<=1´): kills=7 lost=1
  - ´TestNever´ (C, **missing**, demanded ´kills>7´)
- **P2**: nor then
  - ´TestPower´ (B, **skipped**, demanded ´lost=0´): needs root
`, "´", "`")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A demand that cannot be met is a mistake in the table.
func TestDemands(t *testing.T) {
	f := Figures{Pairs: []string{"kills=1.5", "mode=hang"}}
	for demand, want := range map[string]bool{
		"kills>=1.5": true, "kills<=1": false, "kills>1": true, "mode=hang": true, "mode>1": false, "acks>0": false, "acks=0": false,
	} {
		if got, err := f.Meets(demand); got != want || err != nil {
			t.Errorf("%s: %t, %v", demand, got, err)
		}
	}
	for _, demand := range []string{"kills", "kills>many"} {
		if _, err := f.Meets(demand); err == nil {
			t.Errorf("%q is taken", demand)
		}
	}
}

// Printed figures are read back as they were, blanks aside.
func TestPrint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures")
	t.Setenv(figures.FileEnv, path)
	figures.Print(t, "P0", "kills", 3, "mode", "cut in two")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(strings.NewReader(string(text)))
	want := []Figures{{Row: "P0", Test: "TestPrint", Pairs: []string{"kills=3", "mode=cut_in_two"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// Every test that the table and the document name exists, and the document has every
// promise.
func TestNamesExist(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(root, "docs", "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(string(document), -1) {
		named[name] = true
	}
	for _, p := range Promises {
		if item := "- **" + p.Row + "**: " + p.Text; !strings.Contains(string(document), item+"\n") {
			t.Errorf("docs/reliability.md does not have %q", item)
		}
		for _, s := range p.Shown {
			name, _, _ := strings.Cut(s.Test, "/")
			if strings.HasPrefix(name, "Test") {
				named[name] = true
			}
			for _, d := range s.Demands {
				if _, err := (&Figures{}).Meets(d); err != nil {
					t.Errorf("%s: %v", s.Test, err)
				}
			}
		}
	}
	have := tests(t)
	for name := range maps.Keys(named) {
		if !have[name] {
			t.Errorf("%s is named, and there is no such test", name)
		}
	}
	if len(named) < 40 {
		t.Errorf("only %d tests are named", len(named))
	}
}

// tests lists the tests of the module.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "grep", "-rhoE", "--include=*_test.go", `^func (Test|Fuzz)\w+`, root).Output()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		have[strings.TrimPrefix(strings.TrimSpace(line), "func ")] = true
	}
	return have
}
