package compaction_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vectorFile holds recorded answers of one function of the reference system.
type vectorFile struct {
	Function string        `json:"function"`
	Cases    []*vectorCase `json:"cases"`
}

// vectorCase is one call with its recorded answer.
type vectorCase struct {
	Name  string          `json:"name"`
	Tags  []string        `json:"tags"`
	Input json.RawMessage `json:"input"`
	Want  json.RawMessage `json:"want"`

	function string
	manner   *manner // how this release of the reference behaves, as data
}

// verdict is what became of a case.
type verdict int

const (
	passed verdict = iota
	deviated
	notApplicable
	failed
)

// tally counts verdicts, and how many of the cases without a tag passed.
type tally struct {
	cases, untagged, untaggedPassed int
	by                              map[verdict]int
}

func (t *tally) add(c *vectorCase, v verdict) {
	if t.by == nil {
		t.by = map[verdict]int{}
	}
	t.cases++
	t.by[v]++
	if v == notApplicable || c.excused() {
		return
	}
	t.untagged++
	if v == passed {
		t.untaggedPassed++
	}
}

// add counts a case under a name.
func add(tallies map[string]*tally, name string, c *vectorCase, v verdict) {
	if tallies[name] == nil {
		tallies[name] = &tally{}
	}
	tallies[name].add(c, v)
}

func (t *tally) String() string {
	return fmt.Sprintf("cases=%d pass=%d deviations=%d not_applicable=%d fail=%d",
		t.cases, t.by[passed], t.by[deviated], t.by[notApplicable], t.by[failed])
}

// excused reports whether the record itself shows that its answer need not be ours:
// a defect, a result over its target, or bytes that no Go string holds.
func (c *vectorCase) excused() bool {
	return slices.ContainsFunc(c.Tags, func(t string) bool {
		return t == "peer-bug" || t == "over-target" || t == "lone-surrogate" || t == "utf8-split"
	})
}

// leastPermille of our own cases without a tag give the recorded answer. The others
// differ by the rules of the table, each of which a row demands.
const leastPermille = 850

// The answers of the product's own stages, compared with what the reference system
// answered. COMPACTD_VECTORS names another directory of records. Each difference is
// due to a rule of the table deviations, which states what our answer is instead; a
// difference without a rule fails, as does a rule whose check does. The second line
// counts the same for the preset "default", which need not agree: it shows how far the
// product as it comes is from its reference.
func TestConformance(t *testing.T) {
	directory, others := os.Getenv("COMPACTD_VECTORS"), true
	if directory == "" {
		directory, others = "testdata/vectors", false
	}
	files := readVectors(t, directory)
	total, functions, rules := &tally{}, map[string]*tally{}, map[string]*tally{}
	for _, f := range files {
		for _, c := range f.Cases {
			v, rule, diff := compare(c)
			if v == failed {
				t.Errorf("%s %s %s: %s", c.manner.release, c.function, c.Name, diff)
			}
			add(functions, c.function, c, v)
			add(rules, rule, c, v)
			total.add(c, v)
		}
	}
	var report strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&report, format+"\n", args...) }
	line("conformance: %s", total)
	line("conformance: untagged=%d passed_without_a_rule=%d (%d.%d %%)", total.untagged, total.untaggedPassed,
		100*total.untaggedPassed/max(total.untagged, 1), 1000*total.untaggedPassed/max(total.untagged, 1)%10)
	line("conformance: preset default: %s", agreement(files))
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		line("  %-44s %s", name, functions[name])
	}
	for _, d := range deviations {
		r := rules[d.name()]
		if r == nil {
			r = &tally{}
		}
		line("  deviation %-4s %-44s cases=%-3d untagged=%-3d %s", d.row, d.function, r.cases, r.untagged, d.reason)
	}
	fmt.Print(report.String())
	if total.cases == 0 {
		t.Error("there are no records")
	}
	if !others {
		if 1000*total.untaggedPassed < leastPermille*total.untagged {
			t.Errorf("only %d of %d untagged cases pass without a rule", total.untaggedPassed, total.untagged)
		}
		if diff := cmp.Diff(documented(t), report.String()); diff != "" {
			t.Errorf("testdata/conformance.report has another report: %s", diff)
		}
	}
}

// documented is the report of testdata/conformance.report.
func documented(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/conformance.report")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compare compares our answer to a case with the record.
func compare(c *vectorCase) (v verdict, rule, diff string) {
	answer, ok := answers[c.function]
	switch {
	case !ok && slices.Contains(withoutRow, c.function):
		return notApplicable, "", ""
	case !ok:
		return failed, "", "no answer for this function"
	}
	got := plain(answer(c))
	want := c.resolved()
	diff = mismatch(want, got)
	if diff == "" {
		return passed, "", ""
	}
	for _, d := range deviations {
		if d.function != c.function && d.function != "*" || !d.applies(c, want, got) {
			continue
		}
		if problem := d.check(c, want, got); problem != "" {
			return failed, d.name(), fmt.Sprintf("rule %s: %s (%s)", d.row, problem, diff)
		}
		return deviated, d.name(), ""
	}
	return failed, "", diff
}

// agreement counts on how many cases the preset "default" gives the recorded answer.
func agreement(files []*vectorFile) string {
	agreed, cases := 0, 0
	for _, f := range files {
		for _, c := range f.Cases {
			answer, ok := answers[c.function]
			if !ok {
				continue
			}
			cases++
			as := *c
			as.manner = mannerOfDefault
			if mismatch(as.resolved(), plain(answer(&as))) == "" {
				agreed++
			}
		}
	}
	return fmt.Sprintf("cases=%d same=%d other=%d", cases, agreed, cases-agreed)
}

// readVectors reads every record under a directory; those under legacy-v9.5.3 are of
// the release that the reference documents.
func readVectors(t *testing.T, directory string) []*vectorFile {
	t.Helper()
	var out []*vectorFile
	err := filepath.WalkDir(directory, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".json.gz") {
			return err
		}
		f, err := readVector(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		m := mannerOfCurrent
		if filepath.Base(filepath.Dir(path)) == "legacy-v9.5.3" {
			m = mannerOfSeed
		}
		for _, c := range f.Cases {
			c.function, c.manner = f.Function, m
		}
		out = append(out, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readVector(path string) (*vectorFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(zr)
	if err != nil {
		return nil, err
	}
	f := &vectorFile{}
	return f, json.Unmarshal(text, f)
}

// plain returns a value as a reader of its JSON sees it.
func plain(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return parsed(raw)
}

func parsed[T ~[]byte](raw T) (v any) {
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		panic(fmt.Sprintf("%v in %.80s", err, raw))
	}
	return v
}
