package main

import (
	"math/rand/v2"
	"os"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/zricethezav/gitleaks/v8/detect"

	"compactd/internal/summarize/sanitize"
)

// The table is the one that this version of gitleaks gives.
func TestTable(t *testing.T) {
	want, err := table()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../internal/summarize/sanitize/rules/gitleaks.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(want) {
		t.Error("internal/summarize/sanitize/rules/gitleaks.txt is another one: go generate ./internal/summarize/sanitize")
	}
}

// lead is what may stand before a name.
const lead = `[\w.-]{0,50}?`

// write writes a text that an expression matches.
func write(b *strings.Builder, re *syntax.Regexp, r *rand.Rand) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		var all []rune
		for i := 0; i < len(re.Rune); i += 2 {
			for c := max(re.Rune[i], ' '); c <= min(re.Rune[i+1], '~'); c++ {
				all = append(all, c)
			}
		}
		if len(all) == 0 {
			all = re.Rune[:1]
		}
		b.WriteRune(all[r.IntN(len(all))])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpRepeat, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		n := max(re.Min, 0)
		if re.Op == syntax.OpPlus {
			n = 1 + r.IntN(8)
		}
		if re.Op == syntax.OpRepeat && re.Max > re.Min && re.Min > 2 {
			n += r.IntN(min(re.Max-re.Min, 4) + 1)
		}
		for range n {
			write(b, re.Sub[0], r)
		}
	case syntax.OpAlternate:
		write(b, re.Sub[r.IntN(len(re.Sub))], r)
	default:
		for _, s := range re.Sub {
			write(b, s, r)
		}
	}
}

// No detector is lost: of texts that match the expressions of gitleaks, whatever its
// detector finds is taken out here. Rules that go by the name of a file match no text.
func TestNothingIsLost(t *testing.T) {
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		t.Fatal(err)
	}
	d.IgnoreGitleaksAllow = true
	r := rand.New(rand.NewPCG(1, 2))
	rules, found, lost := map[string]bool{}, 0, 0
	check := func(text string) {
		got := sanitize.Redact(text)
		for _, f := range d.DetectString(text) {
			if _, pass, _ := strings.Cut(strings.Trim(f.Secret, `"'`), ":"); f.RuleID == "curl-auth-user" && (len(strings.Trim(pass, `"'`)) < 3 || strings.ContainsAny(pass, "`$")) {
				continue // shorter than any password, or what a shell puts another text for
			}
			found++
			rules[f.RuleID] = true
			if strings.Contains(got, f.Secret) {
				lost++
				t.Logf("%s: %q stays in %q", f.RuleID, f.Secret, text)
			}
		}
	}
	texts := 0
	for _, name := range d.Config.OrderedRules {
		rule := d.Config.Rules[name]
		if rule.Regex == nil || rule.Path != nil {
			continue
		}
		texts++
		re, err := syntax.Parse(strings.ReplaceAll(rule.Regex.String(), lead, ""), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			var b strings.Builder
			write(&b, re, r)
			check(b.String())
			check("see " + b.String() + "\nand more")
			if name == "sourcegraph-access-token" {
				check("sourcegraph " + b.String() + "\n")
			}
		}
	}
	for _, file := range []string{"forms.txt", "lookalikes.txt"} {
		text, err := os.ReadFile("../../internal/summarize/sanitize/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			check(line)
		}
	}
	t.Logf("%d of %d rules found %d secrets, %d of them stay", len(rules), texts, found, lost)
	if lost > 0 || len(rules) < texts*95/100 {
		t.Errorf("%d of %d stay; %d of %d rules were tried", lost, found, len(rules), texts)
	}
}
