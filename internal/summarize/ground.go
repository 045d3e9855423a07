package summarize

import (
	"iter"
	"slices"
	"strings"
	"unicode"
)

// unverified stands for a name in an answer that is nowhere in its prompt.
const unverified = "[unverified]"

// minName is from how many characters on a name is looked for.
const minName = 8

// source is a prompt, as names are looked for in it.
type source struct {
	text   string // in small letters
	names  map[string]bool
	hosts  map[string]bool // that were looked for
	misses int
}

// maxMisses bounds how often the whole prompt is searched for a name that is no
// word of it; a model with more of them invents.
const maxMisses = 500

func newSource(prompt string) *source {
	s := &source{text: strings.ToLower(prompt), names: map[string]bool{}, hosts: map[string]bool{}}
	for w := range names(s.text) {
		s.names[s.text[w.from:w.to]] = true
	}
	return s
}

func (s *source) has(name string) bool {
	name = strings.ToLower(name)
	if s.names[name] {
		return true
	}
	s.misses++
	return s.misses <= maxMisses && strings.Contains(s.text, name)
}

// grounded replaces the identifiers that a model was not given: it made them up,
// or has them from somewhere else. Identifiers are words of capitals, and words
// of letters and digits, that are long enough not to be chance.
func (s *source) grounded(text string) string {
	var b strings.Builder
	kept := 0
	for w := range names(text) {
		if name := text[w.from:w.to]; isName(name) && !s.has(name) {
			b.WriteString(text[kept:w.from] + unverified)
			kept = w.to
		}
	}
	return b.String() + text[kept:]
}

// names lists the words of a text, hyphens and underscores being parts of one.
func names(s string) iter.Seq[span] {
	return func(yield func(span) bool) {
		for i := 0; i < len(s); {
			if !identByte(s[i]) {
				i++
				continue
			}
			j := i + 1
			for j < len(s) && identByte(s[j]) {
				j++
			}
			w := span{i, j}
			for w.from < w.to && strings.IndexByte("-_#", s[w.from]) >= 0 {
				w.from++
			}
			for w.from < w.to && strings.IndexByte("-_#", s[w.to-1]) >= 0 {
				w.to--
			}
			if w.from < w.to && !yield(w) {
				return
			}
			i = j
		}
	}
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

// holds reports whether s says what o does, and not its opposite.
func (s saying) holds(o saying, percent int) bool {
	return s.negated == o.negated && s.covers(o, percent)
}

// covers reports whether s has at least percent of the words of o.
func (s saying) covers(o saying, percent int) bool {
	known := 0
	for _, w := range o.words {
		if _, ok := slices.BinarySearch(s.words, w); ok {
			known++
		}
	}
	return len(o.words) > 0 && known*100 >= len(o.words)*percent
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

// span is a part of a text, in bytes.
type span struct{ from, to int }
