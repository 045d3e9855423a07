package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bench is a sandbox with one file and no repository.
func bench(t *testing.T) *sandbox {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "repo"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := &sandbox{ctx: t.Context(), root: root, env: []string{"PATH=" + os.Getenv("PATH")}}
	s.names = strings.NewReplacer(filepath.Join(root, "repo"), home)
	if _, err := write("a/x.txt", "one\ntwo\nthree\n").run(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Every tool answers as those of a coding agent do, and an edit is seen by the
// next read.
func TestTools(t *testing.T) {
	s := bench(t)
	for _, test := range []struct {
		name   string
		call   call
		want   string
		failed bool
	}{
		{"read", read("a/x.txt"), "     1→one\n     2→two\n     3→three", false},
		{"read some lines", readLines("a/x.txt", 2, 1), "     2→two", false},
		{"read past the end", readLines("a/x.txt", 4, 1), "The file has only 3 lines.", true},
		{"read what is not there", read("b"), "File does not exist.", true},
		{"edit", edit("a/x.txt", "two", "2"), "The file /repo/a/x.txt has been updated successfully.", false},
		{"read after it", read("a/x.txt"), "     1→one\n     2→2\n     3→three", false},
		{"edit what is not there", edit("a/x.txt", "two", "2"), "String to replace not found in file.\nString: two", true},
		{"edit everywhere", editAll("a/x.txt", "e", "E"), "The file /repo/a/x.txt has been updated successfully.", false},
		{"write again", write("a/x.txt", "one\none\n"), "The file /repo/a/x.txt has been updated successfully.", false},
		{"write", write("a/y.go", "one\n"), "File created successfully at: /repo/a/y.go", false},
		{"grep", grep("^on", "a"), "a/x.txt:1:one\na/x.txt:2:one\na/y.go:1:one", false},
		{"grep for nothing", grep("zzz", "."), "No matches found", false},
		{"grep for files", grepFiles("one", "."), "/repo/a/x.txt\n/repo/a/y.go", false},
		{"glob", glob("**/*.go"), "/repo/a/y.go", false},
		{"glob in one folder", glob("*.go"), "No files found", false},
		{"bash", bash("d", "pwd; echo err >&2"), "/repo\nerr", false},
		{"bash fails", bash("d", "echo no; exit 3"), "Exit code 3\nno", true},
	} {
		got, failed := s.do(test.call)
		if got != test.want || failed != test.failed {
			t.Errorf("%s: %q, failed %t", test.name, got, failed)
		}
	}
	if got, failed := s.do(edit("a/x.txt", "one", "1")); !failed || !strings.HasPrefix(got, "Found 2 matches") {
		t.Errorf("an edit of two places: %q, failed %t", got, failed)
	}
}

// What differs from run to run is made the same.
func TestScrub(t *testing.T) {
	s := bench(t)
	in := "go: downloading example.com/x v1.0.0\nok  \tp\t1.234s\nok  \tq\t(cached)\nFAIL\tr\t0.1s\n--- PASS: TestX (1.25s)\n    --- FAIL: TestX/a (0.01s)\n" +
		"x_test.go:1: [rapid] OK, passed 100 tests (3.25ms)\ngoroutine 41 [running]:\nf(0xc0001a2b3c)\n+\u00a0a\n" + s.path("a/x.txt") + ": took 3s\n"
	want := "ok  \tp\t0.042s\nok  \tq\t0.042s\nFAIL\tr\t0.042s\n--- PASS: TestX (0.00s)\n    --- FAIL: TestX/a (0.00s)\n" +
		"x_test.go:1: [rapid] OK, passed 100 tests (1.2ms)\ngoroutine 7 [running]:\nf(0xc000012345)\n+ a\n/repo/a/x.txt: took 3s\n"
	if diff := cmp.Diff(want, s.scrub(in)); diff != "" {
		t.Error(diff)
	}
}

// A long output loses whole lines from its middle, and says how many.
func TestCut(t *testing.T) {
	const line, lines = "0123456789\n", 5000
	s := cut(strings.Repeat(line, lines))
	_, after, _ := strings.Cut(s, "\n\n... [")
	gone, err := strconv.Atoi(strings.Split(after, " ")[0])
	if err != nil || strings.Count(s, line)+gone != lines || len(s) > maxOutput+100 {
		t.Errorf("%d characters, %d lines of %d and %d truncated, %v", len(s), strings.Count(s, line), lines, gone, err)
	}
	for l := range strings.Lines(s) {
		if l != line && l != "\n" && !strings.Contains(l, "truncated") {
			t.Fatalf("a broken line: %q", l)
		}
	}
}

// echo answers every call with the name of its tool; Bash fails.
type echo struct{}

func (echo) do(c call) (string, bool) { return c.tool, c.tool == "Bash" }

// One remark with two calls is two messages: the calls, and their results in the
// same order under the same ids.
func TestSay(t *testing.T) {
	lines, err := perform(scenario{name: "s", window: 100, overhead: 10, play: func(a *agent) {
		a.user(`
			Please
				do ´it´.
		`)
		a.say("Yes.", read("a"), failing(bash("b", "c")))
		a.say("Done.")
	}}, echo{})
	if err != nil || len(lines) != 4 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if got := lines[0].Content[0].Text; got != "Please\n\tdo `it`." || lines[0].Meta.ContextWindow != 100 {
		t.Errorf("the user says %q, meta %v", got, lines[0].Meta)
	}
	calls, results := lines[1].Content[1:], lines[2].Content
	for i, want := range []string{"Read", "Bash"} {
		c, r := calls[i], results[i]
		if c.Name != want || c.ID != r.ToolUseID || *r.Content != want || r.IsError != (want == "Bash") {
			t.Errorf("call %+v, result %+v", c, r)
		}
	}
	first, second := lines[1].Usage, lines[3].Usage
	if first.CacheRead != 0 || second.CacheRead != first.CacheWrite || second.CacheWrite <= 0 {
		t.Errorf("usage %+v, then %+v", first, second)
	}
	if lines[2].TS <= lines[1].TS || lines[1].TS <= lines[0].TS {
		t.Errorf("times %s, %s, %s", lines[0].TS, lines[1].TS, lines[2].TS)
	}
}

// A call that ends otherwise than the script says ends the run.
func TestUnexpected(t *testing.T) {
	for _, c := range []call{bash("b", "c"), failing(read("a"))} {
		lines, err := perform(scenario{name: "s", play: func(a *agent) {
			a.say("", c)
			a.user("not heard any more")
		}}, echo{})
		if err == nil || len(lines) > 0 {
			t.Errorf("%s: %d lines, %v", c.tool, len(lines), err)
		}
	}
}

// Outside of a repository nothing is made, and without the commit the error says why.
func TestNoHistory(t *testing.T) {
	if _, err := newSandbox(t.Context(), t.TempDir()); err == nil {
		t.Error("a sandbox of no repository")
	}
	dir := t.TempDir()
	if _, err := git(t.Context(), dir, nil, "init", "-q"); err != nil {
		t.Skipf("SKIPPED: git is needed: %v", err)
	}
	if _, err := newSandbox(t.Context(), dir); !errors.Is(err, errNoHistory) {
		t.Errorf("an empty repository: %v", err)
	}
}

// A transcript is gzip without a name or a time, one message a line.
func TestEncode(t *testing.T) {
	data, err := encode([]line{{Session: "s", Seq: 1, Content: []block{{Type: "text", Text: "a < b\n"}}}, {Session: "s", Seq: 2}})
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), "\n") != 2 || !strings.Contains(string(text), `"a < b\n"`) || z.Name != "" || !z.ModTime.IsZero() {
		t.Errorf("got %s", text)
	}
}
