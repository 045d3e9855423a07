package measure_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"

	"compactd/internal/compaction/measure"
	"compactd/internal/events/codec"
)

// A15: a text that is too long keeps its head, ends after a sentence or line where
// one ends late enough, and the dots are counted.
func TestCutUnits(t *testing.T) {
	for _, c := range []struct {
		name, text string
		max        int64
		want       string
	}{
		{"fits", "hello", 5, "hello"},
		{"nothing left", "hello", 0, ""},
		{"below nothing", "hello", -1, ""},
		{"only dots", "hello", 2, ".."},
		{"dots and a letter", "hello", 4, "h..."},
		{"sentence", "One sentence. And another one.", 20, "One sentence...."},
		{"sentence too early", "One. Two words that go on and on.", 20, "One. Two words th..."},
		{"line", "first line\nsecond line", 16, "first line\n..."},
		{"Chinese sentence", "今天天气很好。我们去公园吧", 11, "今天天气很好。..."},
		{"not inside a rune", "ab🚀cdef", 6, "ab..."},
		{"not inside a family", "ab👨‍👩‍👧‍👦cd", 12, "ab..."},
		{"not before an accent", "cafe\u0301 au lait", 7, "caf..."},
		{"not inside a flag", "🇩🇪🇫🇷🇮🇹", 9, "🇩🇪..."},
		{"not between CR and LF", "abcd\r\nefgh", 8, "abcd..."},
		{"a character too large for its place", "👨‍👩‍👧‍👦👨‍👩‍👧‍👦", 8, "..."},
	} {
		got, cut := measure.CutUnits(c.text, c.max)
		if got != c.want || cut != (c.text != c.want) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, cut, c.want)
		}
	}
}

// A15: whatever the text, a cut keeps a head of it that ends between characters,
// stays within its budget, and uses at least half of it but for the one character
// that did not fit.
func TestCutProperties(t *testing.T) {
	pieces := []string{
		"a", "word ", "A sentence. ", "\n", "\r\n", "é", "e\u0301", "日", "。", "🚀", "👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "\u200d", "\u0301", "한글", "नमस्ते",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(t, "text"), "")
		max := rapid.Int64Range(-2, 200).Draw(t, "max")
		got, cut := measure.CutUnits(text, max)
		if !cut {
			if got != text {
				t.Fatalf("not cut, but %q", got)
			}
			return
		}
		if n := int64(codec.Units(got)); n > max && max >= 0 {
			t.Fatalf("%d units of %d: %q", n, max, got)
		}
		if max <= 3 {
			return
		}
		head, dots := strings.CutSuffix(got, "...")
		if !dots || !strings.HasPrefix(text, head) || !utf8.ValidString(head) {
			t.Fatalf("%q is no head of %q", got, text)
		}
		if !boundary(text, len(head)) {
			t.Fatalf("%q ends inside a character of %q", got, text)
		}
		if longest := headOf(text, max-3); 2*len(head) < len(longest)-len("👨‍👩‍👧‍👦") {
			t.Fatalf("%q leaves too much of %q", head, longest)
		}
	})
}

// headOf is the longest head of text within n units that ends between characters.
func headOf(text string, n int64) string {
	end := 0
	for g := uniseg.NewGraphemes(text); g.Next(); {
		if n -= int64(codec.Units(g.Str())); n < 0 {
			break
		}
		_, end = g.Positions()
	}
	return text[:end]
}

// boundary reports whether a grapheme of text ends at i.
func boundary(text string, i int) bool {
	at := 0
	for g := uniseg.NewGraphemes(text); at < i && g.Next(); {
		_, at = g.Positions()
	}
	return at == i
}

// A15: a cut to tokens costs at most the tokens requested, under every profile and
// provider.
func TestCutTokens(t *testing.T) {
	text := strings.Repeat("The agent reads a file and names what it found. ", 200)
	for name, p := range measure.Profiles {
		for _, provider := range []string{"openai", "anthropic", "vertex", "mistral"} {
			r := measure.NewRate(p, provider)
			for budget := measure.Tokens(8); budget < 3000; budget += 7 {
				got, cut := measure.CutUnits(text, r.Prose(budget))
				if cost := r.Text(int64(codec.Units(got))); cost > budget || cut && 2*cost < budget {
					t.Fatalf("%s %s: %d tokens of %d: %.60q", name, provider, cost, budget, got)
				}
			}
		}
	}
}
