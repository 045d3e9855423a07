package extract

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/summarize/snippet"
)

// content lists what two texts are compared by where one may reword the other: stems of words
// that say something, and pairs of characters in scripts without spaces.
func content(s string) []string {
	var out []string
	for run := range strings.FieldsFuncSeq(snippet.Lowered(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }) {
		if first, _ := utf8.DecodeRuneInString(run); first >= 0x2e80 {
			out = append(out, pairs(run)...)
		} else if !idleWords[run] && (utf8.RuneCountInString(run) > 2 || unicode.IsDigit(first) || first >= 0x80 || run == "ok" || run == "db" || run == "ci") {
			out = append(out, stem(run))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func pairs(run string) (out []string) {
	last, at := -1, 0
	for i := range run {
		if last >= 0 {
			_, w := utf8.DecodeRuneInString(run[i:])
			out = append(out, run[last:i+w])
		}
		last, at = i, at+1
	}
	if at == 1 {
		out = append(out, run)
	}
	return out
}

// stemRunes is the most of a word that counts.
const stemRunes = 5

var endings = []string{"ings", "ing", "ed", "es", "en", "s", "e"}

func stem(w string) string {
	for _, e := range endings {
		if rest, ok := strings.CutSuffix(w, e); ok && len(rest) > 2 {
			w = rest
			break
		}
	}
	n := 0
	for i := range w {
		if n++; n > stemRunes {
			return w[:i]
		}
	}
	return w
}

// share returns how many per hundred of want are in have, which is sorted.
func share(want, have []string) int {
	known := 0
	for _, w := range want {
		if _, ok := slices.BinarySearch(have, w); ok {
			known++
		}
	}
	return known * 100 / max(1, len(want))
}
