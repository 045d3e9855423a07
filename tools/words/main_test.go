package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A word is found in each scope, with file, line, word and suggestion, in every kind of
// file; and nowhere else.
func TestPlanted(t *testing.T) {
	for name, c := range map[string]struct{ rule, file, text, want string }{
		"identifier":           {"identifier", "a.go", "package a\n\nfunc lastTold() {}\n", "a.go:3:told:emit"},
		"identifier, variable": {"identifier", "a.go", "package a\n\nfunc f() { told := 1; _ = told }\n", "a.go:3:told:emit"},
		"identifier, field":    {"identifier", "a.go", "package a\n\ntype t struct{ told, b int }\n", "a.go:3:told:emit"},
		"identifier, file":     {"identifier", "x/was_told.go", "package a\n", "x/was_told.go:1:told:emit"},
		"identifier, ts":       {"identifier", "a.ts", "const s = 'told'\nlet wasTold = 1\n", "a.ts:2:told:emit"},
		"identifier, py":       {"identifier", "a.py", "s = 'told'  # told\nwas_told = 1\n", "a.py:2:told:emit"},
		"string":               {"string", "a.go", "package a\n\n// told\nvar s = `b\nwas told`\n", "a.go:5:told:emit"},
		"string, snake case":   {"string", "a.go", "package a\n\nvar s = \"told_ms\"\n", "a.go:3:told:emit"},
		"string, tag":          {"string", "a.go", "package a\n\ntype t struct {\n\ta int `json:\"told\"`\n}\n", "a.go:4:told:emit"},
		"string, py":           {"string", "a.py", "# told\nprint('it was told')\n", "a.py:2:told:emit"},
		"string, yaml":         {"string", "a.yaml", "# told\nsummary: it was told\n", "a.yaml:2:told:emit"},
		"log":                  {"log", "a.go", "package a\n\nvar s = \"told\"\n\nfunc f() { l.Info().Msg(\"outcome told\") }\n", "a.go:5:told:emit"},
		"metric, name":         {"metric", "a.go", "package a\n\nvar s = \"told\"\n\nvar o = opts{Name: \"told_total\"}\n", "a.go:5:told:emit"},
		"metric, help":         {"metric", "a.go", "package a\n\nvar o = opts{\n\tHelp: \"Outcomes told.\",\n}\n", "a.go:4:told:emit"},
		"metric, by name":      {"metric", "a.go", "package a\n\nvar s = \"compactd_told_total\"\n", "a.go:3:told:emit"},
		"comment":              {"comment", "a.go", "package a\n\nvar s = \"told\"\n\n// F was\n// told.\nfunc F() {}\n", "a.go:6:told:emit"},
		"comment, ts":          {"comment", "a.ts", "let s = 'told'\n/* a\n told */\n", "a.ts:3:told:emit"},
		"comment, py":          {"comment", "a.py", "s = 'told'\n# was told\n", "a.py:2:told:emit"},
		"comment, make":        {"comment", "Makefile", "told:\n# was told\n", "Makefile:2:told:emit"},
		"prose":                {"prose", "a.md", "# A\n\nThe outcome\nis told.\n", "a.md:4:told:emit"},
		"prose, code":          {"prose", "a.md", "# A\n\n```\nit is told\n```\n", "a.md:4:told:emit"},
		"text":                 {"text", "a.md", "It is Told.\n", "a.md:1:Told:emit"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := parseList(c.rule + ` \btold\b -> emit`)
			if err != nil {
				t.Fatal(err)
			}
			pieces, err := read(c.file, []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			found := l.check(c.file, pieces)
			if len(found) != 1 || found[0].String() != c.want {
				t.Errorf("got %v, want %s", found, c.want)
			}
		})
	}
}

// A phrase is found across lines; what `unless`, `in`, an exception or a longer word
// allows is not.
func TestAllowed(t *testing.T) {
	l, err := parseList("skip **/testdata\nexcept b.md folder: a quotation\n" +
		`text \bset aside\b -> quarantine` + "\n" + `prose,comment \bforget\b -> erase unless session\.forget` + "\n" +
		`prose \btold\b -> emit in docs,README.md` + "\n" + `prose \bfolder\b -> directory`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, text string
		want       int
	}{
		{"a.md", "it is set\naside here", 1},
		{"a.go", "package a\n\n// f is set\n// aside.\nfunc f() {}\n", 1},
		{"a.md", "publish session.forget, do not forget", 1},
		{"a.md", "unforgettable asides", 0},
		{"a.md", "it is told", 0},
		{"docs/a.md", "it is told", 1},
		{"README.md", "it is told", 1},
		{"a.md", "a folder", 1},
		{"b.md", "a folder", 0},
	} {
		pieces, err := read(c.file, []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if found := l.check(c.file, pieces); len(found) != c.want {
			t.Errorf("%s %q: got %v, want %d", c.file, c.text, found, c.want)
		}
	}
	if !l.skips("internal/a/testdata/x.txt") || l.skips("internal/a/x.txt") {
		t.Error("testdata and nothing else is skipped")
	}
}

// The list of the repository finds a sentence of a comment without a noun as its subject, in
// every package and language, at the beginning of a line and behind another sentence.
func TestSubjects(t *testing.T) {
	l := repositoryList(t)
	for _, c := range []struct {
		file, text string
		line       int
	}{
		{"client/a.go", "package a\n\n// What a file has.\nvar b int\n", 3},
		{"internal/worker/service/a.go", "package a\n\nfunc b() {\n\t// None is left.\n}\n", 4},
		{"internal/kv/a_test.go", "package a\n\n// A b has c.\n//\n//   - Those of d have none.\nvar b int\n", 4},
		{"tools/b/a.go", "package a\n\n// B is c. What is d is e.\nvar b int\n", 3},
		{"internal/kv/a.go", "package a\n\n/*\nWhat is d.\n*/\nvar b int\n", 3},
		{"clients/a.ts", "/**\n * What is d.\n */\nlet b\n", 1},
		{"clients/a.py", "def f():\n    \"\"\"What is d.\"\"\"\n", 2},
		{"Makefile", "a:\n\n# What is d\nb:\n", 3},
	} {
		pieces, err := read(c.file, []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if found := l.check(c.file, pieces); len(found) != 1 || found[0].line != c.line || found[0].rule.suggestion != "a noun as the subject" {
			t.Errorf("%s %q: got %v", c.file, c.text, found)
		}
	}
}

// An error of the list names its line.
func TestListErrors(t *testing.T) {
	for _, bad := range []string{"speech told -> emit", "prose told", "prose to( -> x", "except a.md told", "except a.md told: "} {
		if _, err := parseList("# a comment\n" + bad); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// The command counts what it finds in a repository, and an exception that nothing needs
// is an error.
func TestRun(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed, no tree is read: ", err)
	}
	if out, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("git: %v: %s", err, out)
	}
	write("docs/words.txt", "skip docs/words.txt\nprose \\btold\\b -> emit\nexcept c.md told: a quotation\n")
	write("a/b.md", "told\n\ntold\n")
	write("c.md", "told\n")
	for args, want := range map[string]string{
		"":              "a/b.md:1:told:emit\na/b.md:3:told:emit\nwords findings=2 exceptions=1\n",
		"-by-directory": "     2  a\nwords findings=2 exceptions=1\n",
		"c.md":          "words findings=0 exceptions=1\n",
	} {
		var out bytes.Buffer
		below := strings.Fields(strings.ReplaceAll(args, "-by-directory", ""))
		if _, err := run(&out, root, below, args == "-by-directory", false); err != nil || out.String() != want {
			t.Errorf("%q: %v, got\n%swant\n%s", args, err, &out, want)
		}
	}
	write("c.md", "emitted\n")
	if _, err := run(&bytes.Buffer{}, root, nil, false, false); err == nil || !strings.Contains(err.Error(), "c.md told") {
		t.Errorf("got %v", err)
	}
}

// The list of the repository is read, and has at most ten exceptions.
func TestList(t *testing.T) {
	l := repositoryList(t)
	if len(l.rules) < 40 || len(l.exceptions) > 10 {
		t.Errorf("%d rules, %d exceptions", len(l.rules), len(l.exceptions))
	}
	for _, r := range l.rules {
		if regexp.MustCompile(`\w`).FindString(r.suggestion) == "" && r.suggestion != "±" {
			t.Errorf("%s has no suggestion", r.pattern)
		}
	}
}

func repositoryList(t *testing.T) *list {
	t.Helper()
	text, err := os.ReadFile("../../" + listFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := parseList(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}
