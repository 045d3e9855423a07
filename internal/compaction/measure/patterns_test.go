package measure

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A pattern matches what the regular expression with .* in the place of its stars matches.
func TestPatterns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*]{0,8}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[ab]{0,10}`).Draw(t, "text")
		pieces := strings.Split(pattern, "*")
		for i := range pieces {
			pieces[i] = regexp.QuoteMeta(pieces[i])
		}
		want := regexp.MustCompile("^" + strings.Join(pieces, ".*") + "$").MatchString(text)
		if got := (Patterns{"no", pattern}).Match(" " + text + "\n"); got != want {
			t.Fatalf("%q of %q: %t, want %t", pattern, text, got, want)
		}
	})
}
