package snippet

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// proseLines lists the lines of a text that are not code, quoted data or tables,
// without the marks of lists and headings.
func proseLines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		code := false
		for l := range strings.Lines(Head(text, MaxScanned)) {
			l = strings.TrimSpace(l)
			if strings.HasPrefix(l, "```") || strings.HasPrefix(l, "~~~") {
				code = !code
				continue
			}
			if code || l == "" || strings.ContainsRune("|{[<}", rune(l[0])) {
				continue
			}
			if l = strings.TrimSpace(Unmarked(l)); l != "" && !yield(l) {
				return
			}
		}
	}
}

// Unmarked takes "- ", "* ", "> ", "# " and "1. " off the start of a line.
func Unmarked(l string) string {
	l = strings.TrimLeft(l, "#> ")
	if rest, ok := strings.CutPrefix(l, "- "); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(l, "* "); ok {
		return rest
	}
	digits := 0
	for digits < len(l) && digits < 3 && l[digits] >= '0' && l[digits] <= '9' {
		digits++
	}
	if rest := l[digits:]; digits > 0 && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") ")) {
		return rest[2:]
	}
	return l
}

// Sentences lists the sentences of the prose in a text.
func Sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for l := range proseLines(text) {
			for l != "" {
				n := sentenceEnd(l)
				s := strings.TrimSpace(l[:n])
				l = strings.TrimSpace(l[n:])
				if s != "" && !yield(s) {
					return
				}
			}
		}
	}
}

// FirstSentence returns the first sentence of the prose in a text.
func FirstSentence(text string) string {
	for s := range Sentences(text) {
		return s
	}
	return ""
}

// abbreviations end in a full stop that ends no sentence.
var abbreviations = []string{"e.g", "i.e", "etc", "vs", "cf", "approx", "resp"}

// sentenceEnd returns where the first sentence of a line ends.
func sentenceEnd(l string) int {
	for i := 0; i < len(l); {
		j := strings.IndexAny(l[i:], ".!?。！？")
		if j < 0 {
			return len(l)
		}
		i += j
		r, w := utf8.DecodeRuneInString(l[i:])
		end := i + w
		i = end
		if r > utf8.RuneSelf {
			return end
		}
		for end < len(l) && strings.IndexByte(".!?\"')`*", l[end]) >= 0 {
			end++
		}
		if end < len(l) && l[end] != ' ' { // nor is one behind any other mark of the run
			i = end
			continue
		}
		if r != '.' || !isAbbreviation(l[:i-1]) {
			return end
		}
	}
	return len(l)
}

func isAbbreviation(before string) bool {
	word := before[strings.LastIndexAny(before, " (")+1:]
	return slices.ContainsFunc(abbreviations, func(a string) bool { return strings.EqualFold(word, a) })
}

// Head returns at most n bytes of s, cut between runes.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
