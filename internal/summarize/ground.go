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

// vocabulary is what a text may be made of.
type vocabulary map[string]bool

func vocabularyOf(s string) vocabulary {
	v := vocabulary{}
	for _, w := range words(s) {
		v[w] = true
	}
	return v
}

// covers reports whether at least percent of the words of a text are in v; a text
// without words is not covered.
func (v vocabulary) covers(all []string, percent int) bool {
	known := 0
	for _, w := range all {
		if v[w] {
			known++
		}
	}
	return len(all) > 0 && known*100 >= len(all)*percent
}

// Shares of words from which on two lines say the same, and a rule is the user's.
const (
	samePercent  = 70
	usersPercent = 60
)

// rulesOf returns the rules of a summary (C1): those of the previous one and of the
// user, in the words they have, before what a model makes of them. A rule of the
// model that says the same is left out, and one whose words are no user's is none:
// it is what a file, a page or a tool asked for, and returned as such.
func (d *digest) rulesOf(old, written []line) (rules, foreign []line) {
	rules = united(old, d.rules)
	var known, said []vocabulary
	for _, l := range rules {
		known = append(known, vocabularyOf(l.text))
	}
	for _, text := range d.said {
		said = append(said, vocabularyOf(text))
	}
	for _, l := range written {
		all := words(l.text)
		is := func(percent int) func(vocabulary) bool {
			return func(v vocabulary) bool { return v.covers(all, percent) }
		}
		switch {
		case slices.ContainsFunc(known, is(samePercent)):
		case slices.ContainsFunc(said, is(usersPercent)):
			rules = append(rules, l)
			known = append(known, vocabularyOf(l.text))
		default:
			foreign = append(foreign, l)
		}
	}
	return rules, foreign
}
