package reference

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Suite compares what one package answers.
type Suite struct {
	// Answers give the product what the reference system was given, by the names of its
	// functions. An answer only translates: its content comes from the product.
	Answers map[string]func(*Case) any
	// NotApplicable are functions of the reference that no row of the features requires.
	NotApplicable []string
	// Rules are all differences. The first rule that applies decides.
	Rules []Rule
}

// Rule is a row of the features by which our answer differs from the recorded one.
type Rule struct {
	Row, Function, Reason string
	// Applies selects which cases the rule is about; Check returns what is wrong with our
	// answer to one, "" if it is what the row requires.
	Applies func(c *Case, want, got any) bool
	Check   func(c *Case, want, got any) string
}

// NewRule is a rule for one function.
func NewRule(row, function, reason string, applies func(c *Case, want, got any) bool, check func(c *Case, want, got any) string) Rule {
	return Rule{row, function, reason, applies, check}
}

// Name identifies a rule.
func (r *Rule) Name() string { return r.Row + " " + r.Function + " " + r.Reason }

// Always applies to each case of a function.
func Always(*Case, any, any) bool { return true }

// Verdict is what became of a case.
type Verdict int

// The verdicts.
const (
	Passed Verdict = iota
	Deviated
	NotApplicable
	Failed
)

// Run compares our answers to all records of the suite's functions, and its report with
// testdata/conformance.report. The third line of a report counts the same for the preset "default",
// which need not agree: it shows how far the product as it comes is from its reference.
func (s *Suite) Run(t *testing.T) {
	t.Helper()
	cases := Cases(t, slices.AppendSeq(slices.Clone(s.NotApplicable), maps.Keys(s.Answers))...)
	if len(cases) == 0 {
		t.Fatal("there are no records")
	}
	total, functions, rules := &tally{}, map[string]*tally{}, map[string]*tally{}
	for _, c := range cases {
		v, rule, diff := s.Compare(c)
		if v == Failed {
			t.Errorf("%s %s %s: %s", c.Release.Name, c.Function, c.Name, diff)
		}
		add(functions, c.Function, c, v)
		add(rules, rule, c, v)
		total.add(c, v)
	}
	var report strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&report, format+"\n", args...) }
	line("conformance: %s", total)
	line("conformance: untagged=%d passed_without_a_rule=%d", total.untagged, total.untaggedPassed)
	line("conformance: preset default: %s", s.agreement(cases))
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		line("  %-44s %s", name, functions[name])
	}
	for _, r := range s.Rules {
		n := rules[r.Name()]
		if n == nil {
			n = &tally{}
		}
		line("  deviation %-4s %-44s cases=%-3d untagged=%-3d %s", r.Row, r.Function, n.cases, n.untagged, r.Reason)
	}
	t.Log("\n" + report.String())
	if _, own := records(); !own {
		return
	}
	documented, err := os.ReadFile("testdata/conformance.report")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(documented), report.String()); diff != "" {
		t.Errorf("testdata/conformance.report has another report: %s", diff)
	}
}

// Compare compares our answer to a case with the record.
func (s *Suite) Compare(c *Case) (v Verdict, rule, diff string) {
	if slices.Contains(s.NotApplicable, c.Function) {
		return NotApplicable, "", ""
	}
	got, want := s.Answer(c), c.wanted()
	if diff = Mismatch(want, got); diff == "" {
		return Passed, "", ""
	}
	r := s.Rule(c, want, got)
	if r == nil {
		return Failed, "", diff
	}
	if problem := r.Check(c, want, got); problem != "" {
		return Failed, r.Name(), fmt.Sprintf("rule %s: %s (%s)", r.Row, problem, diff)
	}
	return Deviated, r.Name(), ""
}

// Answer is our answer to a case, as a reader of its JSON sees it.
func (s *Suite) Answer(c *Case) any {
	c.answer = s.Answers[c.Function]
	return Plain(c.answer(c))
}

// Rule is the first rule that applies to our answer to a case, nil without.
func (s *Suite) Rule(c *Case, want, got any) *Rule {
	for i := range s.Rules {
		if r := &s.Rules[i]; (r.Function == c.Function || r.Function == "*") && r.Applies(c, want, got) {
			return r
		}
	}
	return nil
}

// agreement counts on how many cases the preset "default" gives the recorded answer.
func (s *Suite) agreement(cases []*Case) string {
	agreed, all := 0, 0
	for _, c := range cases {
		if s.Answers[c.Function] == nil {
			continue
		}
		all++
		as := *c
		as.Release = Default
		if Mismatch(as.wanted(), s.Answer(&as)) == "" {
			agreed++
		}
	}
	return fmt.Sprintf("cases=%d same=%d other=%d", all, agreed, all-agreed)
}

// tally counts verdicts, and how many of the cases without a tag passed.
type tally struct {
	cases, untagged, untaggedPassed int
	by                              map[Verdict]int
}

func (t *tally) add(c *Case, v Verdict) {
	if t.by == nil {
		t.by = map[Verdict]int{}
	}
	t.cases++
	t.by[v]++
	if v == NotApplicable || c.Excused() {
		return
	}
	t.untagged++
	if v == Passed {
		t.untaggedPassed++
	}
}

// add counts a case under a name.
func add(tallies map[string]*tally, name string, c *Case, v Verdict) {
	if tallies[name] == nil {
		tallies[name] = &tally{}
	}
	tallies[name].add(c, v)
}

func (t *tally) String() string {
	return fmt.Sprintf("cases=%d pass=%d deviations=%d not_applicable=%d fail=%d",
		t.cases, t.by[Passed], t.by[Deviated], t.by[NotApplicable], t.by[Failed])
}
