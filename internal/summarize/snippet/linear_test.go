package snippet_test

import (
	"strings"
	"testing"

	"compactd/internal/summarize/snippet"
	"compactd/internal/testkit/linear"
)

// A mark costs as much in a long line as in a short one.
func TestLinear(t *testing.T) {
	const n, most = 8000, 2.5
	for name, of := range map[string]func(n int) string{
		"marks":         func(n int) string { return "a" + strings.Repeat(".", n) + "x" },
		"quoted":        func(n int) string { return strings.Repeat(`.'`, n/2) + "x" },
		"words":         func(n int) string { return strings.Repeat(".a", n/2) },
		"abbreviations": func(n int) string { return strings.Repeat("etc. ", n/5) },
		"sentences":     func(n int) string { return strings.Repeat("a. ", n/3) },
	} {
		lines := [2]string{of(n), of(4 * n)}
		r := linear.RatioOf(n, most, func(size int) linear.Cost {
			return linear.Of(1, func() {
				for range snippet.Sentences(lines[size]) {
				}
			})
		})
		if r.Worst() > most {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// The sentences end at a mark before a space, also behind a run of marks within a word.
func TestSentencesOfMarks(t *testing.T) {
	for s, want := range map[string]string{
		"See a...b. Go on.":       "See a...b.|Go on.",
		"See a.\"'.b?! Go on.":    "See a.\"'.b?!|Go on.",
		"It is e.g. one. Go on.":  "It is e.g. one.|Go on.",
		"It is etc.. Go on.":      "It is etc..|Go on.",
		"It is (e.g.) one. Go.":   "It is (e.g.) one.|Go.",
		"Read v1.2.3!x. Go on...": "Read v1.2.3!x.|Go on...",
		"見て。a..b. 次。":             "見て。|a..b.|次。",
	} {
		var got []string
		for x := range snippet.Sentences(s) {
			got = append(got, x)
		}
		if all := strings.Join(got, "|"); all != want {
			t.Errorf("%q has the sentences %q, want %q", s, all, want)
		}
	}
}
