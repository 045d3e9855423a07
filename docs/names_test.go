package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Flags and commands of worker and publisher are those of the reference, which is
// written from the programs.
func TestCommandsAndFlags(t *testing.T) {
	known := reference(t)
	for _, p := range pages(t) {
		for _, line := range p.commandLines() {
			words := strings.Fields(line)
			program := strings.TrimPrefix(words[0], "bin/")
			verb := program
			switch {
			case len(words) > 2 && known[strings.Join(append([]string{program}, words[1:3]...), " ")] != nil:
				verb += " " + words[1] + " " + words[2]
			case len(words) > 1 && known[program+" "+words[1]] != nil:
				verb += " " + words[1]
			case len(words) > 1 && regexp.MustCompile(`^[a-z]+$`).MatchString(words[1]):
				t.Errorf("%s: %q: there is no command %s %s", p.path, line, program, words[1])
			}
			for _, flag := range flags.FindAllString(line, -1) {
				if !known[program][flag] && !known[verb][flag] {
					t.Errorf("%s: %q: there is no flag %s", p.path, line, flag)
				}
			}
		}
		for _, m := range span.FindAllStringSubmatch(p.prose(), -1) {
			flag := flags.FindString(m[1])
			if strings.HasPrefix(m[1], "--") && !known["worker"][flag] && !known["publisher"][flag] && !known[""][flag] {
				t.Errorf("%s: `%s`: there is no such flag", p.path, m[1])
			}
		}
	}
}

var (
	flags   = regexp.MustCompile(`(?:^|\s|\[)--[a-z][a-z-]*`)
	program = regexp.MustCompile(`(?:^|[\s(;&|])((?:bin/)?(?:worker|publisher)(?: [^|;&<>)#]*|$))`)
	// Texts of the log that begin with the name of a program, and are no command.
	logged = []string{"worker failed"}
)

// commandLines are calls of worker and publisher, in blocks and in the text.
func (p page) commandLines() (out []string) {
	add := func(text string) {
		for _, m := range program.FindAllStringSubmatch(text, -1) {
			if line := strings.TrimSpace(m[1]); !slices.Contains(logged, line) {
				out = append(out, line)
			}
		}
	}
	for _, b := range p.blocks {
		if b.lang != "sh" {
			continue
		}
		for line := range strings.SplitSeq(b.text, "\n") {
			code, _, _ := strings.Cut(line, "# ")
			add(code)
		}
	}
	for _, m := range span.FindAllStringSubmatch(p.prose(), -1) {
		if strings.HasPrefix(m[1], "worker ") || strings.HasPrefix(m[1], "publisher ") || strings.HasPrefix(m[1], "bin/") {
			add(m[1])
		}
	}
	return out
}

// reference reads docs/cli.md: the flags of each program and each command, as --name
// with what may stand before it, and under "" those of all commands.
func reference(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{"": {}}
	command := ""
	for line := range strings.SplitSeq(read(t, "docs/cli.md"), "\n") {
		if m := regexp.MustCompile("^###? ((?:worker|publisher).*)$").FindStringSubmatch(line); m != nil {
			command = m[1]
			out[command] = map[string]bool{}
		}
		if m := regexp.MustCompile("^- `(--[a-z-]+)").FindStringSubmatch(line); m != nil {
			for _, before := range []string{"", " ", "["} {
				out[command][before+m[1]], out[""][before+m[1]] = true, true
			}
		}
	}
	for c := range out {
		out[c]["--help"], out[c][" --help"] = true, true
	}
	if len(out) < 20 {
		t.Fatalf("docs/cli.md has %d commands", len(out))
	}
	return out
}

// Variables, metrics, make targets and paths that pages name are there.
func TestNames(t *testing.T) {
	metrics := read(t, "docs/operations.md") + read(t, "docs/gateway.md") // TestMetricsAreDocumented holds their tables to the code
	makefile := read(t, "Makefile")
	for _, p := range pages(t) {
		for _, v := range variable.FindAllString(p.text, -1) {
			if !isVariable(t, v) {
				t.Errorf("%s: nothing reads %s", p.path, v)
			}
		}
		for _, m := range span.FindAllStringSubmatch(p.prose(), -1) {
			name := m[1]
			if metric.MatchString(name) && !strings.Contains(metrics, "| `"+name+"`") && !strings.Contains(metrics, ", `"+name+"`") {
				t.Errorf("%s: there is no metric %s", p.path, name)
			}
			if target, ok := strings.CutPrefix(name, "make "); ok && !strings.Contains(makefile, "\n"+strings.Fields(target)[0]+":") {
				t.Errorf("%s: there is no target for %s", p.path, name)
			}
			if p.path != "CHANGELOG.md" && file.MatchString(name) {
				for _, name := range alternatives(strings.TrimSuffix(name, "…")) {
					if found, err := filepath.Glob(filepath.Join(root, name)); err != nil || len(found) == 0 {
						t.Errorf("%s: there is no %s", p.path, name)
					}
				}
			}
		}
	}
}

var (
	variable = regexp.MustCompile(`\bCOMPACTD_[A-Z][A-Z_]*[A-Z]\b`)
	metric   = regexp.MustCompile(`^compactd_[a-z_]*[a-z]$`)
	file     = regexp.MustCompile(`^(?:client|cmd|deploy|docs|examples|internal|scripts|tools)/[\w./*{},-]+$`)
)

// alternatives are the paths that a path with one pair of braces stands for.
func alternatives(path string) []string {
	before, rest, open := strings.Cut(path, "{")
	list, after, closed := strings.Cut(rest, "}")
	if !open || !closed {
		return []string{path}
	}
	var out []string
	for part := range strings.SplitSeq(list, ",") {
		out = append(out, before+part+after)
	}
	return out
}

// isVariable reports whether docs/cli.md has a variable, a provider is set by it, or
// a test or tool reads it.
func isVariable(t *testing.T, name string) bool {
	t.Helper()
	if strings.Contains(read(t, "docs/cli.md"), "`"+name+"`") {
		return true
	}
	if slices.Contains([]string{"COMPACTD_SESSIONS", "COMPACTD_MORE_SESSIONS", "COMPACTD_VECTORS"}, name) { // of tests and measuring tools
		return true
	}
	env, err := os.ReadFile(filepath.Join(root, "internal", "summarize", "provider", "env.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)`[,|` a-z-]*\\|").FindAllStringSubmatch(read(t, "docs/summaries.md"), -1) {
		prefix := "COMPACTD_" + strings.ToUpper(strings.ReplaceAll(m[1], "-", "_")) + "_"
		if setting, ok := strings.CutPrefix(name, prefix); ok && strings.Contains(string(env), `"`+setting+`"`) {
			return true
		}
	}
	return false
}

// Every alert has its heading under Alerts, and every heading there an alert.
func TestAlerts(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, "docs/operations.md"), "\n## Alerts\n")
	section, _, found := strings.Cut(rest, "\n## ")
	if !found {
		t.Fatal("docs/operations.md has no section Alerts")
	}
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)- alert: (\w+)$`).FindAllStringSubmatch(read(t, "deploy/prometheus/rules.yml"), -1) {
		want = append(want, m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(section, -1) {
		got = append(got, m[1])
	}
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("docs/operations.md explains the alerts %v; deploy/prometheus/rules.yml has %v", got, want)
	}
}
