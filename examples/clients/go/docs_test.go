package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown matches a piece of code of docs/clients.md, with the comment above it
// that says which region of which file it is.
var shown = regexp.MustCompile("(?m)^<!-- (\\S+): (\\w+) -->\n```\\w+\n((?s:.*?))^```$")

func TestDocsShowTheExamples(t *testing.T) {
	const root = "../../.."
	doc := read(t, filepath.Join(root, "docs", "clients.md"))
	snippets := shown.FindAllStringSubmatch(doc, -1)
	if n := strings.Count(doc, "```") / 2; n != len(snippets) {
		t.Errorf("docs/clients.md has %d pieces of code, and %d say where they are from", n, len(snippets))
	}
	found := map[string]bool{}
	for _, s := range snippets {
		path, name, code := s[1], s[2], s[3]
		found[path+": "+name] = true
		if want := region(t, read(t, filepath.Join(root, path)), name); code != want {
			t.Errorf("docs/clients.md shows another %q than %s has:\n%s\nIt should be:\n%s", name, path, code, want)
		}
	}
	for path, names := range map[string][]string{
		"client/example_test.go":         {"readme"},
		"examples/agents/openai/main.go": {"loop"},
		"examples/typescript/agent.ts":   {"turn", "swap", "missed"},
	} {
		for _, name := range names {
			if !found[path+": "+name] {
				t.Errorf("docs/clients.md does not show %q of %s", name, path)
			}
		}
	}
}

// region returns what stands between two marks.
func region(t *testing.T, text, name string) string {
	t.Helper()
	_, rest, begun := strings.Cut(text, "// doc:begin "+name+"\n")
	code, _, ended := strings.Cut(rest, "// doc:end "+name+"\n")
	if !begun || !ended {
		t.Fatalf("no region %q", name)
	}
	code = strings.TrimRight(code, "\n\t") + "\n"
	if strings.HasPrefix(code, "\t") { // a part of a function
		code = strings.ReplaceAll("\n"+code, "\n\t", "\n")[1:]
	}
	return code
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
