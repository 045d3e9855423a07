package needs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/tools/needs"
)

// read makes a session of turns in the dialect of Anthropic.
func read(t *testing.T, turns ...string) *needs.Session {
	t.Helper()
	var all [][]dialect.Message
	for _, turn := range turns {
		var raw []codec.Raw
		if err := codec.Unmarshal([]byte(turn), &raw); err != nil {
			t.Fatal(err)
		}
		ms, err := events.Anthropic.ReadAll(raw)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ms)
	}
	return needs.Read(all)
}

func user(text string) string { return fmt.Sprintf(`[{"role":"user","content":%q}]`, text) }

func call(args string) string {
	return `[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"Edit","input":` + args + `}]}]`
}

func TestAfter(t *testing.T) {
	s := read(t,
		user("look into src/start.go"),
		user("main.go has:\n\tfunc parseHeader(b []byte) error {\nand node_count and package.json; xparse_all"),
		user("later_here"),
		call(`{"path":"/src/start.go","old_string":"a\n\tfunc parseHeader(b []byte) error {\nshort","deep":[{"x":"node_count, later_here, package.json, parse_all"}]}`),
		call(`{"x":"node_count"}`),
	)
	for _, c := range []struct {
		name     string
		at, stop int
		want     needs.Needs
	}{
		{"what stood before, as a whole, and not since", 2, 5, needs.Needs{
			Idents: []string{"parseHeader", "node_count"}, Lines: []string{"func parseHeader(b []byte) error {"},
		}},
		{"what came since was not there before", 3, 5, needs.Needs{
			Idents: []string{"parseHeader", "node_count", "later_here"}, Lines: []string{"func parseHeader(b []byte) error {"},
		}},
		{"calls after the next compaction do not count", 2, 3, needs.Needs{}},
		{"a call repeats what the one before it has named", 4, 5, needs.Needs{Idents: []string{"node_count"}}},
	} {
		got := s.After(c.at, c.stop, map[string]struct{}{"package.json": {}})
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// Every harness names what an edit takes out in its own way. Of a patch these are the lines that it
// takes out and those around them, of a program with a patch in a string too.
func TestLines(t *testing.T) {
	const was = "\tfunc parseHeader(b []byte) error {\n\treturn decode(b, header)"
	before := user("main.go has:\n" + was + "\nand a new_line_of_its_own")
	patch := "*** Begin Patch\n*** Update File: main.go\n@@\n \tfunc parseHeader(b []byte) error {\n-\treturn decode(b, header)\n+and a new_line_of_its_own\n*** End Patch\n"
	diff := "--- a/main.go\n+++ b/main.go\n@@ -1,2 +1,2 @@\n \tfunc parseHeader(b []byte) error {\n-\treturn decode(b, header)\n+and a new_line_of_its_own\n"
	for _, args := range []string{
		fmt.Sprintf(`{"file_path":"m","old_string":%q,"new_string":"and a new_line_of_its_own"}`, was),
		fmt.Sprintf(`{"filePath":"m","oldString":%q,"newString":"and a new_line_of_its_own"}`, was),
		fmt.Sprintf(`{"path":"m","edits":[{"oldText":%q,"newText":"and a new_line_of_its_own"}]}`, was),
		fmt.Sprintf(`{"command":"str_replace","old_str":%q,"new_str":"and a new_line_of_its_own"}`, was),
		fmt.Sprintf(`{"input":%q}`, patch),
		fmt.Sprintf(`{"_raw":%q}`, patch),
		fmt.Sprintf(`{"command":%q}`, "git apply <<'EOF'\n"+diff+"EOF"),
		fmt.Sprintf(`{"input":%q}`, fmt.Sprintf("const patch = %q; tools.apply_patch(patch)", strings.ReplaceAll(patch, "\t", ""))),
	} {
		got := read(t, user("go"), before, call(args)).After(2, 3, nil).Lines
		if d := cmp.Diff([]string{"func parseHeader(b []byte) error {", "return decode(b, header)"}, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", args, d)
		}
	}
}

// A text that a recording has redacted is no need.
func TestRemoved(t *testing.T) {
	s := read(t, user("go"), user("key_REDACTED and REDACTED/main.go:\n\tconst token = REDACTED + suffix\nnode_count"),
		call(`{"old_string":"\tconst token = REDACTED + suffix","x":"key_REDACTED REDACTED/main.go node_count"}`))
	if d := cmp.Diff(needs.Needs{Idents: []string{"node_count"}}, s.After(2, 3, nil)); d != "" {
		t.Error(d)
	}
}

func TestIn(t *testing.T) {
	n := needs.Needs{Idents: []string{"node_count", "a/b.go"}, Lines: []string{"return nil, fmt.Errorf(x)"}}
	for text, want := range map[string]needs.Kept{
		"":                                  {},
		"mynode_count node_counts x/a/b.go": {Idents: 1},
		"(node_count)":                      {Idents: 1},
		"\t\treturn nil, fmt.Errorf(x)\n":   {Lines: 1},
	} {
		if got := n.In(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestCommon(t *testing.T) {
	var all []*needs.Session
	for i := range 10 {
		text := fmt.Sprintf("own_%d everywhere_x", i)
		if i < 2 {
			text += " twice_x"
		}
		if i < 1 {
			text += " once_x"
		}
		all = append(all, read(t, user(text)))
	}
	want := map[string]struct{}{"everywhere_x": {}, "twice_x": {}}
	if d := cmp.Diff(want, needs.Common(all)); d != "" {
		t.Error(d)
	}
}

// Text is the same for arguments as an object, a list and a text that is no JSON.
func TestText(t *testing.T) {
	for args, want := range map[string]string{
		`{"a":"x","b":["y",{"c":"z","d":1}],"e":"w"}`: "x\ny\nz\nw\n",
		`"a text"`: "a text\n",
		`{}`:       "",
		`{"cut":`:  "{\"cut\":\n",
	} {
		m := dialect.Message{Role: dialect.RoleAssistant, Parts: []dialect.Part{{Kind: dialect.PartCall, Args: codec.Raw(args)}}}
		if got := needs.Text([]dialect.Message{m}); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
