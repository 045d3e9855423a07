package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The figures of docs/comparison.md are those that the pages of measurements have.
func TestFigures(t *testing.T) {
	text := func(name string) string {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(data)), " ")
	}
	figures := func(page, pattern string) []string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text(page))
		if m == nil {
			t.Errorf("%s has no %s", page, pattern)
			return make([]string, 9)
		}
		return m[1:]
	}
	fact := func(name string) []string { return figures("docs/what-if.md", name+` (\d+)/(\d+) (\d+)/(\d+)`) }
	thousandths := func(s string) string {
		n, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
		if err != nil {
			t.Errorf("%q: %v", s, err)
		}
		return strings.TrimSuffix(strconv.FormatFloat(n/1000, 'f', 2, 64), "0")
	}
	paths, failures := fact("facts: paths"), fact("facts: failures")
	bench := func(line string) string { return figures("docs/performance.txt", `bench `+line+` ([\d.]+) `)[0] }
	waits := figures("docs/quality.txt", `eval blocked_ms_p99 \d+ <=\d+ met \(the most (\d+) of (\d+) turns\)`)
	comparison := text("docs/comparison.md")
	for _, want := range []string{
		fmt.Sprintf("cut: %s of %s paths, %s of %s failures", paths[2], paths[3], failures[2], failures[3]),
		fmt.Sprintf("compactd: %s of %s paths, %s of %s failures", paths[0], paths[1], failures[0], failures[1]),
		fmt.Sprintf("after %s ms, p99 %s ms, at 2,000 turns a second", bench("latency_2k_p50_ms"), bench("latency_2k_p99_ms")),
		fmt.Sprintf("%s µs a check, %s ms a pass; %s ms a pass over 10,000 messages", bench("peer_check_1k_us"), thousandths(bench("peer_pass_1k_us")), thousandths(bench("peer_pass_10k_us"))),
		fmt.Sprintf("compactd: %s µs a turn, for any length; %s ms a pass; %s ms over 10,000 messages",
			thousandths(bench("turn_cost_10k_ns")), thousandths(bench("pass_1k_us")), thousandths(bench("pass_10k_us"))),
		fmt.Sprintf("It waited %s ms after each of %s turns", waits[0], regexp.MustCompile(`(\d)(\d{3})$`).ReplaceAllString(waits[1], "$1,$2")),
	} {
		if !strings.Contains(comparison, want) {
			t.Errorf("docs/comparison.md does not say %q", want)
		}
	}
}

// The figures of docs/comparison.md about the reference are those of all reports together.
func TestConformanceFigures(t *testing.T) {
	var sum [5]int
	line := regexp.MustCompile(`(?m)^conformance: cases=(\d+) .* not_applicable=(\d+) fail=(\d+)\n.* untagged=(\d+) passed_without_a_rule=(\d+)$`)
	for _, files := range []string{"internal/*/testdata/", "internal/*/*/testdata/"} {
		reports, err := filepath.Glob(filepath.Join(root, files, "conformance.report"))
		if err != nil {
			t.Fatal(err)
		}
		for _, report := range reports {
			data, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			for i, figure := range line.FindStringSubmatch(string(data))[1:] {
				n, _ := strconv.Atoi(figure)
				sum[i] += n
			}
		}
	}
	cases, inapplicable, failed, permille := sum[0], sum[1], sum[2], 1000*sum[4]/sum[3]
	all := fmt.Sprintf("all %d,%03d cases pass or have a rule, %d of them are not applicable, and %d.%d %%",
		cases/1000, cases%1000, inapplicable, permille/10, permille%10)
	if page := strings.Join(strings.Fields(read(t, "docs/comparison.md")), " "); !strings.Contains(page, all) || failed > 0 {
		t.Errorf("docs/comparison.md does not say %q; %d cases failed", all, failed)
	}
}

// The values of the table of docs/quality.md are those that make eval wrote into quality.txt.
func TestQualityFigures(t *testing.T) {
	measured := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^eval (\S+) (\S+)`).FindAllStringSubmatch(read(t, "docs/quality.txt"), -1) {
		measured[m[1]] = m[2]
	}
	rows := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`]+)` \\| ([\\d.]+)").FindAllStringSubmatch(read(t, "docs/quality.md"), -1)
	if len(rows) < 10 {
		t.Errorf("docs/quality.md has %d rows", len(rows))
	}
	for _, m := range rows {
		if measured[m[1]] != m[2] {
			t.Errorf("docs/quality.md has %s %s, quality.txt %q", m[1], m[2], measured[m[1]])
		}
	}
}
