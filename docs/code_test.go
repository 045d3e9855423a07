package docs

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"compactd/internal/events/schema/schematest"
	"compactd/internal/policyfile"
)

// hidden is a command where none is looked for.
var hidden = regexp.MustCompile(`(?m)^(\$ |(bin/)?(worker|publisher) [a-z-]+ -|make [a-z-]+( |$)|go (run|test) \.)`)

var (
	whole  = regexp.MustCompile(`^[a-z/]+\.(go|ts|mjs|py)$`)
	region = regexp.MustCompile(`^(\S+): (\w+)$`)
)

// Code is that of a file which is compiled and tested, word for word; the comment above
// it names the file, and the part if it is not all of it. YAML is a policy, JSON is JSON. Commands stand
// between fences, where they are run.
func TestCode(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			switch b.lang {
			case "go", "ts", "js", "python":
				checkRegion(t, p, b)
			case "yaml":
				checkPolicy(t, p, b)
			case "json":
				checkJSON(t, p, b)
			case "sh", "output":
			case "":
				if hidden.MatchString(b.text) {
					t.Errorf("%s:%d: commands are not run here; mark the block sh", p.path, b.line)
				}
			default:
				t.Errorf("%s:%d: nothing checks %q", p.path, b.line, b.lang)
			}
		}
		if p.path != "docs/cli.md" && hidden.MatchString(strings.ReplaceAll(p.prose(), "\n    ", "\n")) {
			t.Errorf("%s: an indented command is not run; put it between fences", p.path)
		}
	}
}

// Code that is marked to be shown is shown.
func TestMarkedCode(t *testing.T) {
	var text strings.Builder
	for _, p := range pages(t) {
		text.WriteString(p.text)
	}
	found := 0
	for _, dir := range []string{"client", "examples"} {
		must(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.Name() == "dist" || d.Name() == "node_modules": // what npm made
				return fs.SkipDir
			case d.IsDir():
				return nil
			}
			code, err := os.ReadFile(path)
			for _, m := range regexp.MustCompile(`(?m)^\s*// doc:begin (\w+)$`).FindAllSubmatch(code, -1) {
				found++
				name := strings.TrimPrefix(filepath.ToSlash(path), root+"/") + ": " + string(m[1])
				if !strings.Contains(text.String(), "<!-- "+name+" -->") {
					t.Errorf("no page shows %s", name)
				}
			}
			return err
		}))
	}
	if found < 4 {
		t.Errorf("%d pieces of code are marked", found)
	}
}

func checkRegion(t *testing.T, p page, b block) {
	t.Helper()
	if whole.MatchString(b.note) {
		if code := read(t, b.note); code != b.text {
			t.Errorf("%s:%d: %s is\n%s", p.path, b.line, b.note, code)
		}
		return
	}
	m := region.FindStringSubmatch(b.note)
	if m == nil {
		t.Errorf("%s:%d: the comment above does not say where this code is from", p.path, b.line)
		return
	}
	sign, indent := "// ", "\t"
	if filepath.Ext(m[1]) == ".py" {
		sign, indent = "# ", "    "
	}
	_, rest, begun := strings.Cut(read(t, m[1]), sign+"doc:begin "+m[2]+"\n")
	code, _, ended := strings.Cut(rest, sign+"doc:end "+m[2]+"\n")
	if !begun || !ended {
		t.Errorf("%s:%d: %s has no part %s", p.path, b.line, m[1], m[2])
		return
	}
	code = strings.TrimRight(code, "\n\t ") + "\n"
	if strings.HasPrefix(code, indent) { // a part of a function
		code = strings.ReplaceAll("\n"+code, "\n"+indent, "\n")[1:]
	}
	if code != b.text {
		t.Errorf("%s:%d: %s has\n%s", p.path, b.line, m[1], code)
	}
}

func checkPolicy(t *testing.T, p page, b block) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	must(t, os.WriteFile(path, []byte(b.text), 0o600))
	if _, err := policyfile.Load(policyfile.Options{Policy: path}); err != nil {
		t.Errorf("%s:%d: %v", p.path, b.line, err)
	}
}

// checkJSON leaves out what is cut short with …; TestWirePage and TestHTTPPage hold
// payloads to more.
func checkJSON(t *testing.T, p page, b block) {
	t.Helper()
	if strings.Contains(b.text, "…,") || strings.Contains(b.text, "…}") || strings.Contains(b.text, "…]") || p.path == "docs/http.md" {
		return
	}
	if p.path == "docs/format/policy.md" { // a turn with a policy
		if err := schematest.Validate("turn", []byte(b.text)); err != nil {
			t.Errorf("%s:%d: %v", p.path, b.line, err)
		}
	}
	d := json.NewDecoder(strings.NewReader(b.text))
	for d.More() {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Errorf("%s:%d: %v", p.path, b.line, err)
			return
		}
	}
}
