package sanitize_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"compactd/internal/summarize/sanitize"
)

// A text is what a reader sees, and every part of it leads back to its own bytes.
func TestNormalize(t *testing.T) {
	for _, c := range []struct{ text, find, original string }{
		{"plain", "lai", "lai"},
		{"pass\u00adword=x", "password", "pass\u00adword"},
		{"p\u200ba\u2060s\u202es", "pass", "p\u200ba\u2060s\u202es"},
		{"\uff50\uff41\uff53\uff53＝１", "pass=1", "\uff50\uff41\uff53\uff53＝１"},
		{"\U0001d429\U0001d41a\U0001d42c\U0001d42c", "pass", "\U0001d429\U0001d41a\U0001d42c\U0001d42c"},
		{"a\x1b[31mred\x1b[0m b", "ared b", "a\x1b[31mred\x1b[0m b"},
		{"x contrasen\u0303a: y", "contraseña", "contrasen\u0303a"},
		{"ﬁle", "file", "ﬁle"},
		{"a\U000e0041b\ufe0f\u3164c", "abc", "a\U000e0041b\ufe0f\u3164c"},
		{"tab\there\x00now", "herenow", "here\x00now"},
		{"\x7f\x1b", "", ""},
	} {
		n := sanitize.Normalize(c.text)
		at := strings.Index(n.S, c.find)
		if at < 0 {
			t.Errorf("%q became %q", c.text, n.S)
			continue
		}
		if from, to := n.Original(at, at+len(c.find)); c.text[from:to] != c.original {
			t.Errorf("%q in %q is %q, want %q", c.find, c.text, c.text[from:to], c.original)
		}
	}
}

// Whatever a text is made of, the way back is exact: parts stay in their order and
// inside the text, and what was removed is invisible.
func TestNormalizeAnyText(t *testing.T) {
	letters := []rune("aé\u0301＝\u00ad\u200b\x1b[m \n\x00ﬁ\U0001d429世\ufe0fA")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom(letters), 0, 60, -1).Draw(t, "text")
		if rapid.Bool().Draw(t, "broken") {
			text += "\xff\xc3"
		}
		n := sanitize.Normalize(text)
		last := 0
		for i := range n.S {
			_, w := utf8.DecodeRuneInString(n.S[i:])
			from, to := n.Original(i, i+w)
			if from < 0 || to > len(text) || from >= to || to < last {
				t.Fatalf("%q: %d to %d after %d", text, from, to, last)
			}
			last = to
		}
		for _, r := range n.S {
			if sanitize.Invisible(r) {
				t.Fatalf("%q keeps %U", n.S, r)
			}
		}
		if again := sanitize.Normalize(n.S); again.S != n.S && utf8.ValidString(text) && norm.NFKC.IsNormalString(n.S) {
			t.Fatalf("%q became %q", n.S, again.S)
		}
	})
}
