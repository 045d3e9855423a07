package summarize

import (
	"slices"
	"strings"
	"unicode"
)

// unverified stands for a name in an answer that is nowhere in its prompt.
const unverified = "[unverified]"

// minName is from how many characters on a name is looked for.
const minName = 8

// grounded replaces the identifiers that a model was not given: it made them up,
// or has them from somewhere else. Identifiers are words of capitals, and words
// of letters and digits, that are long enough not to be chance. source is in
// small letters.
func grounded(s, source string) string {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(s); {
		if !identByte(s[i]) {
			i++
			continue
		}
		j := i + 1
		for j < len(s) && identByte(s[j]) {
			j++
		}
		if w := strings.Trim(s[i:j], "-_#"); isName(w) && !strings.Contains(source, strings.ToLower(w)) {
			b.WriteString(s[kept:i] + unverified)
			kept = j
		}
		i = j
	}
	if kept == 0 {
		return s
	}
	return b.String() + s[kept:]
}

func isName(w string) bool {
	if len(w) < minName {
		return false
	}
	letters, small := 0, false
	for i := range len(w) {
		c := w[i] | 0x20
		if c >= 'a' && c <= 'z' {
			letters++
			small = small || w[i] >= 'a'
		}
	}
	return letters > 0 && (!small || digits(w) > 0)
}

// words are what two texts are compared by: those of four letters and more,
// without case, and numbers.
func words(s string) []string {
	all := strings.FieldsFunc(folded(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	all = slices.DeleteFunc(all, func(w string) bool { return len(w) < 4 && !unicode.IsDigit(rune(w[0])) })
	slices.Sort(all)
	return slices.Compact(all)
}

// saying is what a line says, as far as code can tell: its words, and whether it
// says yes or no.
type saying struct {
	words   []string
	negated bool
}

var negations = newPhrases(
	"avoid", "cannot", "can't", "do not", "don't", "dont", "forbidden", "must not", "mustn't", "never", "no", "not", "shouldn't",
	"stop", "without", "won't",
)

func sayingOf(s string) saying {
	return saying{words(s), matches(folded(s), negations)}
}

// holds reports whether s says what o does: at least percent of its words.
func (s saying) holds(o saying, percent int) bool {
	known := 0
	for _, w := range o.words {
		if _, ok := slices.BinarySearch(s.words, w); ok {
			known++
		}
	}
	return len(o.words) > 0 && s.negated == o.negated && known*100 >= len(o.words)*percent
}

func sayingsOf(lines []line) []saying {
	out := make([]saying, len(lines))
	for i, l := range lines {
		out[i] = sayingOf(l.text)
	}
	return out
}

// anyHolds reports whether one of all says what o does.
func anyHolds(all []saying, o saying, percent int) bool {
	return slices.ContainsFunc(all, func(s saying) bool { return s.holds(o, percent) })
}

// Shares of words from which on two lines say the same, and a rule is the user's.
const (
	samePercent  = 70
	usersPercent = 60
)

// foreignMark begins what a model took for a rule, though no user said it.
const foreignMark = "not from the user: "

// rulesOf returns the rules of a summary (C1): those of the previous one and of the
// user, in the words they have, before what a model makes of them. A rule of the
// model that says the same is left out, and one whose words are no user's is none:
// it is what a file, a page or a tool asked for, and marked as such.
func (d *digest) rulesOf(old, written []line) (rules, foreign []line) {
	rules = united(old, d.rules)
	known := sayingsOf(rules)
	for _, l := range written {
		o := sayingOf(l.text)
		switch {
		case anyHolds(known, o, samePercent):
		case anyHolds(d.said, o, usersPercent):
			rules = append(rules, l)
			known = append(known, o)
		default:
			l.text = foreignMark + strings.TrimPrefix(l.text, foreignMark)
			foreign = append(foreign, l)
		}
	}
	return rules, foreign
}
