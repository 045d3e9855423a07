package attached

import (
	"regexp"
	"strings"
	"unicode"

	"compactd/internal/summarize/snippet"
)

// namesText reports a line with a name of a text: without one no sentence mentions any.
func namesText(lower string) bool {
	for w := range strings.FieldsFuncSeq(lower, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }) {
		if named[w] {
			return true
		}
	}
	return false
}

// mentioned returns the end of the sentence of a line that speaks of a text of others, -1 for
// none.
func mentioned(lower string) int {
	first := -1
	if at := accordingTo.FindStringIndex(lower); at != nil {
		first = at[1]
	}
	if first < 0 && !namesText(lower) {
		return -1
	}
	for _, m := range mentions {
		if at := m.FindStringIndex(lower); at != nil && (first < 0 || at[1] < first) {
			first = at[1]
		}
	}
	if first < 0 {
		return -1
	}
	first = max(0, first-1)
	if i := sentenceEnd.FindStringIndex(lower[first:]); i != nil {
		return first + i[1]
	}
	return len(lower)
}

var sentenceEnd = regexp.MustCompile(`[.!?:]\s|[。！？]`)

// insertion is a parenthesis, or text between dashes, with more of the sentence behind it.
var insertion = regexp.MustCompile(`\(([^()]*)(?:\)[^.!?]*\p{L}|$)|\s[-–—]+\s(.*?)\s[-–—]+\s`)

// inserted returns where a rule of some length is put into a sentence, -1 for nowhere.
func inserted(s string) int {
	if !strings.ContainsAny(s, "(-–—") {
		return -1
	}
	for _, m := range insertion.FindAllStringSubmatchIndex(s, -1) {
		from, to := m[2], m[3]
		if from < 0 {
			from, to = m[4], m[5]
		}
		if m[0] > 0 && snippet.Matches(snippet.Lowered(s[from:to]), snippet.RuleWords) && (len(strings.Fields(s[from:to])) >= quoteWords || isCJKText(s[from:to]) && to-from > 24) {
			return m[0]
		}
	}
	return -1
}

// conclusion returns where in a line with words of others the user's own conclusion stands.
func conclusion(s string, announced int) (from, to int) {
	if m := relayed.FindStringSubmatchIndex(s); m != nil && m[2] >= announced {
		return m[2], m[1]
	}
	return 0, 0
}
