package snippet

import (
	"iter"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Phrases are words to look for. They are read at the first search.
type Phrases struct {
	read func() *[256][]phrase // by their first byte
}

type phrase struct {
	word     string
	stem     bool // it may go on
	unspaced bool // it may stand within letters
}

// NewPhrases returns words, in small letters, to look for with [Matches] and [Find]. One that
// ends in "*" is the beginning of a word. "(a|b) c" stands for "a c" and "b c", and "(a|)" may
// be left out.
func NewPhrases(all ...string) *Phrases {
	return &Phrases{sync.OnceValue(func() *[256][]phrase {
		var out [256][]phrase
		for _, pattern := range all {
			for _, w := range expanded(pattern) {
				w, stem := strings.CutSuffix(strings.TrimSpace(w), "*")
				out[w[0]] = append(out[w[0]], phrase{w, stem, unspaced(w)})
			}
		}
		return &out
	})}
}

// expanded lists the words that a pattern stands for.
func expanded(pattern string) []string {
	from := strings.IndexByte(pattern, '(')
	if from < 0 {
		return []string{pattern}
	}
	to := from + strings.IndexByte(pattern[from:], ')')
	var out []string
	for choice := range strings.SplitSeq(pattern[from+1:to], "|") {
		out = append(out, expanded(strings.ReplaceAll(pattern[:from]+choice+pattern[to+1:], "  ", " "))...)
	}
	return out
}

// Matches reports whether lower, a text without capitals, holds one of words.
func Matches(lower string, words *Phrases) bool {
	from, _ := Find(lower, words)
	return from >= 0
}

// Find returns where the first of words stands in lower, a text without capitals: -1 for
// nowhere. Of two that begin there it is the longer.
func Find(lower string, words *Phrases) (from, to int) {
	byFirst := words.read()
	for i := range len(lower) {
		if i > 0 && asciiWord[lower[i-1]] && asciiWord[lower[i]] {
			continue // within a word
		}
		to = -1
		for _, w := range byFirst[lower[i]] {
			end := i + len(w.word)
			if end > to && strings.HasPrefix(lower[i:], w.word) && (w.unspaced || !letterBefore(lower[:i]) && (w.stem || !LetterAfter(lower[end:]))) {
				to = end
			}
		}
		if to >= 0 {
			return i, to
		}
	}
	return -1, -1
}

// asciiWord are the bytes of words in ASCII.
var asciiWord = func() (out [256]bool) {
	for _, r := range "abcdefghijklmnopqrstuvwxyz0123456789_" {
		out[r] = true
	}
	return out
}()

// Each lists where words stand in lower, a text without capitals.
func Each(lower string, words *Phrases) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for at := 0; at < len(lower); {
			from, to := Find(lower[at:], words)
			if from < 0 || !yield(at+from, at+to) {
				return
			}
			at += to
		}
	}
}

// Set returns the words of a list.
func Set(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		out[w] = true
	}
	return out
}

// Unspaced reports a letter of a script without spaces between words, or with particles joined
// to them.
func Unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// unspaced reports a word that may stand within letters.
func unspaced(w string) bool { return w == "لا ت" || strings.ContainsFunc(w, Unspaced) }

func letterBefore(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
}

// LetterAfter reports whether s begins with a letter, a digit or an underscore.
func LetterAfter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
}

// Lowered is a text as words are looked for in it.
func Lowered(s string) string { return strings.ToLower(strings.ReplaceAll(s, "’", "'")) }
