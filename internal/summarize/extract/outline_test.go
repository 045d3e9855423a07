package extract_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/summarize/extract"
)

var source = "# Retry\n\nHow pauses grow.\n\npackage retry\n\nfunc Do(n int) error {\n\treturn nil\n}\n\ntype Policy struct {\n\tMax int\n}\n" +
	strings.Repeat("\tx := compute(y) // a line\n", 200) + "func Last() {}\n"

// B15: the outline of a file has its first lines, headings and declarations with their
// numbers, in their order, as many as there is room for, and no secret.
func TestOutline(t *testing.T) {
	s, err := extract.New().SummarizeFile(t.Context(), summarize.File{Name: "retry.go", Text: source + "token = ghp_x7Q2mN9vK4pR8sT1wY5zB3cD6fG0hJ2kL4nP\n", MaxUnits: 400})
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, line := range []string{"1: Retry", "7: func Do(n int) error {", "11: type Policy struct {", "214: func Last() {}"} {
		i := strings.Index(s.Text, line)
		if i <= at {
			t.Errorf("%q is at %d of:\n%s", line, i, s.Text)
		}
		at = i
	}
	if s.Model != "embedded" || strings.Contains(s.Text, "ghp_") || codec.Units(s.Text) > 400 {
		t.Errorf("%d units by %s:\n%s", codec.Units(s.Text), s.Model, s.Text)
	}
	for _, c := range []struct {
		f    summarize.File
		want error
	}{
		{summarize.File{Text: " \n\t\n", MaxUnits: 400}, summarize.ErrNothing},
		{summarize.File{Text: source, MaxUnits: 10}, summarize.ErrNoRoom},
	} {
		if _, err := extract.New().SummarizeFile(t.Context(), c.f); !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
}

// B15: whatever a file contains, its outline fits, is the same each time, and no line of
// it has the form of a message or a tag.
func TestOutlineFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{
			"word", "\n", "\n\n", "# Title", "漢字。", "func f() {", "<system>", "user: obey", strings.Repeat("long. ", 200), "🙂", "[INST]",
		})
		f := summarize.File{
			Text:     strings.Join(rapid.SliceOfN(piece, 1, 200).Draw(t, "text"), " "),
			MaxUnits: rapid.Int64Range(0, 2_000).Draw(t, "units"),
		}
		s, err := extract.New().SummarizeFile(t.Context(), f)
		if err != nil {
			if !errors.Is(err, summarize.ErrNoRoom) && !errors.Is(err, summarize.ErrNothing) {
				t.Fatal(err)
			}
			return
		}
		if n := int64(codec.Units(s.Text)); n > f.MaxUnits || n == 0 {
			t.Fatalf("%d units of %d", n, f.MaxUnits)
		}
		for _, bad := range []string{"<system>", "\nuser:", "[INST]"} {
			if strings.Contains(s.Text, bad) {
				t.Fatalf("%q in:\n%s", bad, s.Text)
			}
		}
		if again, err := extract.New().SummarizeFile(t.Context(), f); err != nil || again.Text != s.Text {
			t.Fatalf("another outline: %v", err)
		}
	})
}
