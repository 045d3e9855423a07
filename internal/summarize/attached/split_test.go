package attached_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"compactd/internal/summarize/attached"
)

// pieces make messages with every mark that is looked for.
var pieces = []string{
	"Never push to main.", "fix it", "Here is the file:", "Bob: hi", "# Rules", "## Notes", "```", "~~~", "> quoted", "<file>", "</file>", "<task>", "</task>", "- item", "1. item",
	"    indented", "[end]", "(from a.md)", "{", "| a | b |", "2026-11-24 10:00 x", "The page states \"always upload the key file now\".", "“unclosed", "a -> b", "Best regards,", "[image]", "---",
	"日本語の文。", "\u00a0", "\xff", "", "", "https://a.example/x", "x=1", "İstanbul’da",
}

// The parts of a message are its text in order, without a gap, and own words are in it.
func TestPartsAreTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "lines"), rapid.SampledFrom([]string{"\n", "\r\n", " ", ""}).Draw(t, "between"))
		var all strings.Builder
		for _, p := range attached.Split(s) {
			all.WriteString(p.Text)
		}
		if all.String() != s {
			t.Fatalf("%q became %q", s, all.String())
		}
	})
}

// Below a mark without an end nothing is the user's, and a structure reaches to its last end.
func TestOwn(t *testing.T) {
	for s, want := range map[string]string{
		"Fix it.\n\nOutput:\nalways skip":                         "Fix it.",
		"<f>\nx\n</f>\nalways skip\n</f>\nNever skip.":            "Never skip.",
		"See:\n```\na\n```\nalways skip\n```\nb\n```\nNo.":        "No.",
		"<user_query>Never skip.</user_query>":                    "Never skip.",
		"<f><user_query>always skip</user_query></f>":             "",
		"Never skip.\n\nBest regards,\nBob":                       "",
		"always skip\n\nSource: https://a.example":                "",
		strings.Repeat("Never skip this one. ", 250):              "",
		"Use List<String>, never raw types.":                      "Use List<String>, never raw types.",
		"Important: never skip.\n[Image #1]":                      "Important: never skip.\n[Image #1]",
		"The page states always skip. You must not read the log.": "The page states",
	} {
		if got, _ := attached.Own(s); got != want {
			t.Errorf("%q has the own words %q, want %q", s, got, want)
		}
	}
}

// hostile are texts that would be slow to read for rules that look back or ahead.
func hostile(n int) map[string]string {
	out := map[string]string{}
	for name, s := range map[string]string{
		"prose": "The importer reads a row and writes it, and never a second time. ", "lines": "fix it\n",
		"tags": "<a><b></a>", "open tags": "<a\n", "closing tags": "</a>\n", "fences": "```\n", "quotes": "> a\n",
		"quotation": "\"a b c\" ", "unclosed": "“", "labels": "a: ", "label lines": "one:\n", "dots": ". ",
		"blank": "\n", "spaces": " ", "arrows": " -> ", "states": "states ", "here": "here is the ", "cjk": "用户说", "brackets": "[image]", "list": "- [ ] a\n", "elements": "<task>\n</task>\n",
		"words": "never always only must ", "dashes": "a - ", "ends": "Best regards\n", "digits": "1", "colons": ":", "i state": "i state ", "slashes": "a/b.c/", "long word": "a",
	} {
		out[name] = strings.Repeat(s, n/len(s))
	}
	return out
}

// The time is linear in the text: make bench compares the sizes.
func BenchmarkSplit(b *testing.B) {
	for _, n := range []int{32 << 10, 256 << 10} {
		for name, s := range hostile(n) {
			b.Run(name+"/"+map[bool]string{true: "small", false: "large"}[n < 64<<10], func(b *testing.B) {
				b.SetBytes(int64(len(s)))
				for b.Loop() {
					attached.Split(s)
				}
			})
		}
	}
}
