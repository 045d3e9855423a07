package term

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"
	"pgregory.net/rapid"
)

var sessions = []Column{
	{Name: "SESSION", Min: 8},
	{Name: "TURNS", Right: true, Drop: 1},
	{Name: "LEVEL", Style: func(v string) Style {
		if v == "blocking" {
			return Bad
		}
		return Plain
	}},
	{Name: "LAST TURN", Drop: 2},
}

func drawn(s *Screen) string {
	var out bytes.Buffer
	s.Writer = &out
	t := NewTable(s, sessions...)
	t.Row("a-session-with-a-long-name", 1117, "ok", "2026-01-31 12:00:00")
	t.Row("日本語の名前です", 3, "blocking", "2026-01-31 12:00:01")
	t.Row("it\x1b[2Jcannot\nobey", 3, "ok")
	if err := t.Flush(); err != nil {
		panic(err)
	}
	return out.String()
}

// A table is as wide as its values where nothing bounds it. Else columns are shortened
// first, and left out only where that does not do.
func TestTable(t *testing.T) {
	for width, want := range map[int]string{
		0: `
SESSION                     TURNS  LEVEL     LAST TURN
a-session-with-a-long-name   1117  ok        2026-01-31 12:00:00
日本語の名前です                3  blocking  2026-01-31 12:00:01
it [2Jcannot obey               3  ok
`,
		50: `
SESSION       TURNS  LEVEL     LAST TURN
a-session-w…   1117  ok        2026-01-31 12:00:00
日本語の名…       3  blocking  2026-01-31 12:00:01
it [2Jcanno…      3  ok
`,
		40: `
SESSION                  TURNS  LEVEL
a-session-with-a-long-…   1117  ok
日本語の名前です             3  blocking
it [2Jcannot obey            3  ok
(no room for LAST TURN; --json has all)
`,
		20: `
SESSION     LEVEL
a-session…  ok
日本語の…   blocking
it [2Jcan…  ok
(no room for TURNS,…
`,
		10: `
SES…  LEV…
a-s…  ok
日…   blo…
it …  ok
(no room …
`,
	} {
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), drawn(&Screen{Width: width})); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}

// Whatever the width, no line is longer, and colour takes no room.
func TestTableFits(t *testing.T) {
	text.EnableColors()
	t.Cleanup(text.DisableColors)
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(10, 100).Draw(t, "width")
		for line := range strings.Lines(drawn(&Screen{Width: width, color: true})) {
			if n := text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n")); n > width {
				t.Fatalf("%d characters in %d: %q", n, width, line)
			}
		}
	})
}

// Long values of a column that wraps go on below, and nothing of them is lost.
func TestWrap(t *testing.T) {
	var out bytes.Buffer
	w := NewTable(&Screen{Writer: &out, Width: 30}, Column{}, Column{Wrap: true, Min: 10})
	w.Row("problem", "the disk of the server is nearly full")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "problem  the disk of the\n         server is nearly full\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The rows of a log are aligned with its head, whatever comes; the last column has what
// is left. A column without room is named.
func TestLog(t *testing.T) {
	for width, want := range map[int]string{
		0:  "SESSION     TURN  WHAT\nshort          1  all of what there is to say\nmuch-too-long-a-name     2\n",
		30: "SESSION     TURN  WHAT\nshort          1  all of what…\nmuch-too-…     2\n",
		20: "(no room for TURN; …\nSESSION     WHAT\nshort       all of …\nmuch-too-…\n",
	} {
		var out bytes.Buffer
		l, err := NewLog(&Screen{Writer: &out, Width: width}, Column{Name: "SESSION", Width: 10}, Column{Name: "TURN", Right: true, Drop: 1}, Column{Name: "WHAT", Min: 8})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range [][]any{{"short", 1, "all of what there is to say"}, {"much-too-long-a-name", 2, ""}} {
			if err := l.Row(row...); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}

// On a terminal a row of a log replaces a line that is not finished, such as the bar of a program beside it.
func TestLogBesideBar(t *testing.T) {
	var out bytes.Buffer
	out.WriteString("sessions  40% |████      |")
	l, err := NewLog(&Screen{Writer: &out, Width: 80, Height: 24}, Column{Name: "WHAT"})
	if err != nil {
		t.Fatal(err)
	}
	out.WriteString("sessions  50% |█████     |")
	if err := l.Row("level"); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasSuffix(got, "|\r\x1b[Klevel\n") {
		t.Errorf("%q", got)
	}
}

// Colour is for a terminal, unless it is requested; COLUMNS is a width, whatever is
// written to.
func TestOpen(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	t.Cleanup(text.DisableColors)
	for _, c := range []struct {
		columns, plain string
		color          When
		want           string
	}{
		{"", "", Auto, "0 bad"},
		{"80", "", Auto, "80 bad"},
		{"wide", "", Auto, "0 bad"},
		{"-1", "", Never, "0 bad"},
		{"", "", Always, "0 \x1b[31;1mbad\x1b[0m"},
		{"", "1", Always, "0 \x1b[31;1mbad\x1b[0m"},
	} {
		t.Setenv("COLUMNS", c.columns)
		t.Setenv("NO_COLOR", c.plain)
		s := Open(file, c.color)
		if got := fmt.Sprintf("%d %s", s.Width, Paint(s, Bad, "bad")); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
		if s.Terminal() {
			t.Error("a file is a terminal")
		}
	}
}
