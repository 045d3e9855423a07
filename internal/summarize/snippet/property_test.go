package snippet_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/events/codec"
	"compactd/internal/summarize/snippet"
	"compactd/internal/testkit/summaries"
)

// A cut text keeps to its bound, ends in an ellipsis, and is cut between runes.
func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string { return summaries.DrawText(t, "text") })).Draw(t, "s")
		n := rapid.IntRange(0, 60).Draw(t, "n")
		whole, got := snippet.Plain(s), snippet.Clip(s, n)
		if codec.Units(got) > n {
			t.Fatalf("Clip(%q, %d) = %q of %d units", s, n, got, codec.Units(got))
		}
		if codec.Units(whole) <= n {
			if got != whole {
				t.Fatalf("Clip(%q, %d) = %q, want %q", s, n, got, whole)
			}
			return
		}
		if n > 0 && (!strings.HasSuffix(got, "…") || !strings.HasPrefix(whole, strings.TrimSuffix(got, "…"))) {
			t.Fatalf("Clip(%q, %d) = %q, not a head of %q", s, n, got, whole)
		}
		if snippet.Plain(got) != got {
			t.Fatalf("Clip(%q, %d) = %q is not plain", s, n, got)
		}
	})
}

// Neutral text stays as it is.
func TestNeutralIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once := snippet.Neutral(summaries.DrawText(t, "text"))
		if twice := snippet.Neutral(once); twice != once {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}
