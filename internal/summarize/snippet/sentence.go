package snippet

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Words that mark a sentence. They match whole words, without case.
var (
	RuleWords = NewPhrases(
		"always", "at least", "at most", "avoid", "cannot", "do not", "don't", "dont", "ensure", "forbidden", "has to", "have to",
		"keep in mind", "make sure", "may not", "must", "mustn't", "never", "no longer", "not allowed", "only", "remember to",
		"should not", "shouldn't", "under no circumstances", "without exception",
	)
	// ChoiceWords are those of users who decide something, or change what was decided.
	ChoiceWords = NewPhrases(
		"decided", "decision", "final answer", "from now on", "go with", "going with", "instead", "let's not", "new plan", "off the table",
		"rather than", "switch to", "the plan is", "we're going to", "we are going to",
	)
	DecisionWords = NewPhrases(
		"chose", "chosen", "decided", "decision", "going with", "i will use", "i'll use", "instead of", "let's go with", "let's use",
		"opted", "rather than", "settled on", "switched to", "switching to", "the plan is", "we will use", "we'll use", "will go with",
	)
	DiscoveryWords = NewPhrases(
		"because", "discovered", "due to", "explains why", "found out", "found that", "found the", "i see that", "it seems that",
		"note that", "root cause", "the bug is", "the cause is", "the issue is", "the problem is", "the reason", "this means",
		"turned out", "turns out",
	)
)

// Phrases are words to look for, by their first byte.
type Phrases [256][]string

// NewPhrases returns words, in small letters, to look for with [Matches].
func NewPhrases(words ...string) *Phrases {
	var p Phrases
	for _, w := range words {
		p[w[0]] = append(p[w[0]], w)
	}
	return &p
}

// Matches reports whether lower, a text without capitals, holds one of words.
func Matches(lower string, words *Phrases) bool {
	for i := range len(lower) {
		for _, w := range words[lower[i]] {
			if strings.HasPrefix(lower[i:], w) && !letterBefore(lower[:i]) && !LetterAfter(lower[i+len(w):]) {
				return true
			}
		}
	}
	return false
}

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
		if end < len(l) && l[end] != ' ' {
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
	for _, a := range abbreviations {
		if strings.EqualFold(word, a) {
			return true
		}
	}
	return false
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
