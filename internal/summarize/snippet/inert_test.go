package snippet_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/events/codec"
	"compactd/internal/summarize/snippet"
)

// Markup that loads or runs something where a summary is shown does not; code that looks a
// little like it stays. It is looked at as a reader sees it.
func TestInert(t *testing.T) {
	for s, want := range map[string]string{
		"![x](http://a.example/?q=1)":              "[x](http://a.example/?q=1)",
		"![a[b]c](http://a.example)":               "[a[b]c](http://a.example)",
		"see ![x][ref] and ![y][]":                 "see [x][ref] and [y][]",
		"！［x］（http://a.example）":                   "［x］（http://a.example）",
		"!\u200b[x](http://a.example)":             "\u200b[x](http://a.example)",
		"[ref]: http://a.example/x.png":            "[ref]- http://a.example/x.png",
		"- [ref]: http://a.example/x.png":          "- [ref]- http://a.example/x.png",
		"<img src=x onerror=alert(1)>":             "(img src=x onerror=alert(1)>",
		"<IMG/SRC=x>":                              "(IMG/SRC=x>",
		"＜script＞x＜/script＞":                       "(script＞x(/script＞",
		"<scr\u00adipt>":                           "(scr\u00adipt>",
		"<x y onclick=z>":                          "(x y onclick=z>",
		"<!-- hidden --> <?xml ?> <!DOCTYPE html>": "(!-- hidden --> (?xml ?> (!DOCTYPE html>",
		"<a href='http://a.example'>":              "(a href='http://a.example'>",
		"List<String>, a<b, a < b, x <= y, a->b":   "List<String>, a<b, a < b, x <= y, a->b",
		"if (![1,2].includes(x)) or !ok[3]":        "if (![1,2].includes(x)) or !ok[3]",
		"#![feature] vec![1]; done: [x] a":         "#![feature] vec![1]; done: [x] a",
		"Größe ＜ 3 und 2 ½":                        "Größe ＜ 3 und 2 ½",
	} {
		if got := snippet.Inert(s); got != want {
			t.Errorf("%q became %q, want %q", s, got, want)
		}
	}
}

// It never makes a text longer, so that a summary which fits still does, and what is
// inert stays as it is.
func TestInertNeverGrows(t *testing.T) {
	parts := []string{"<", "＜", "!", "！", "[", "]", "(", ")", "](", "]:", "img", " src=", "script", "\n", "- ", "x", "\u200b", "é", "ﬃ", "http://a.example"}
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts"), "")
		once := snippet.Inert(s)
		if codec.Units(once) > codec.Units(s) {
			t.Fatalf("%q became %q", s, once)
		}
		if twice := snippet.Inert(once); codec.Units(twice) > codec.Units(once) {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}
