package extract

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/summarize/snippet"
)

// content lists the parts of a text by which a rewording is recognised: stems of words with a meaning, and
// pairs of characters in scripts without spaces.
func content(s string) []string {
	var out []string
	lower, from, kind := snippet.Lowered(s), 0, noLetter
	for i, r := range lower {
		switch k := kindOf(r, kind); {
		case k == kind:
		case kind == spaced && !idleWords[lower[from:i]]:
			out = appendStem(out, lower[from:i])
			from, kind = i, k
		case kind == unspaced:
			out = append(out, pairs(lower[from:i])...)
			from, kind = i, k
		default:
			from, kind = i, k
		}
	}
	switch rest := lower[from:]; {
	case kind == spaced && !idleWords[rest]:
		out = appendStem(out, rest)
	case kind == unspaced:
		out = append(out, pairs(rest)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// letters is the kind of a run of letters.
type letters int

const (
	noLetter letters = iota
	spaced           // of words with spaces between them
	unspaced
)

// kindOf returns the kind of a letter, after one of a kind.
func kindOf(r rune, before letters) letters {
	switch {
	case unicode.IsMark(r), r == 'ー':
		return before
	case snippet.Unspaced(r):
		return unspaced
	case unicode.IsLetter(r), unicode.IsDigit(r):
		return spaced
	}
	return noLetter
}

// appendStem adds the stem of a word with a meaning of its own.
func appendStem(out []string, w string) []string {
	first, _ := utf8.DecodeRuneInString(w)
	if utf8.RuneCountInString(w) > 2 || unicode.IsDigit(first) || first >= utf8.RuneSelf || w == "ok" || w == "db" || w == "ci" {
		return append(out, stem(w))
	}
	return out
}

// pairs lists the pairs of characters of a run, without the endings that its language joins to words:
// Hiragana after a character, the last syllable of Hangul.
func pairs(run string) (out []string) {
	all := []rune(run)
	if len(all) == 1 && !unicode.In(all[0], unicode.Hangul, unicode.Hiragana) {
		return []string{run}
	}
	for i := range len(all) - 1 {
		ending := unicode.In(all[i+1], unicode.Hiragana)
		switch {
		case unicode.In(all[i], unicode.Hiragana), i > 0 && i == len(all)-2 && unicode.In(all[i+1], unicode.Hangul):
		case ending:
			out = append(out, string(all[i]))
		default:
			out = append(out, string(all[i:i+2]))
		}
	}
	return out
}

// stemRunes is the length of a stem.
const stemRunes = 5

// shortStem is the length in scripts whose vowels are separate marks.
const shortStem = 3

var endings = []string{"ings", "ing", "ed", "es", "en", "s", "e"}

func stem(w string) string {
	w = bare(w)
	for _, e := range endings {
		if rest, ok := strings.CutSuffix(w, e); ok && len(rest) > 2 {
			if w = rest; len(e) > 1 && len(w) > 3 && w[len(w)-1] == w[len(w)-2] { // dropping
				w = w[:len(w)-1]
			}
			break
		}
	}
	n, most := 0, stemRunes
	if first, _ := utf8.DecodeRuneInString(w); unicode.In(first, unicode.Devanagari) {
		most = shortStem
	}
	for i := range w {
		if n++; n > most {
			return w[:i]
		}
	}
	return w
}

// bare is a word without the prefixes of its language: particles and the article in Arabic and Hebrew, the
// prefix of a German participle.
func bare(w string) string {
	first, size := utf8.DecodeRuneInString(w)
	switch {
	case unicode.In(first, unicode.Arabic):
		if strings.ContainsRune("وفبكل", first) && utf8.RuneCountInString(w) > 3 {
			w = w[size:]
		}
		w = strings.TrimPrefix(strings.TrimPrefix(w, "ال"), "لل")
	case unicode.In(first, unicode.Hebrew):
		if strings.ContainsRune("הובלמשכ", first) && utf8.RuneCountInString(w) > 3 {
			w = w[size:]
		}
	case strings.HasPrefix(w, "ge") && len(w) > 7 && (w[len(w)-1] == 't' || strings.HasSuffix(w, "en")):
		w = w[2:]
	}
	return w
}

// share returns the percentage of want that is in have, which is sorted.
func share(want, have []string) int {
	known := 0
	for _, w := range want {
		if _, ok := slices.BinarySearch(have, w); ok {
			known++
		}
	}
	return known * 100 / max(1, len(want))
}
