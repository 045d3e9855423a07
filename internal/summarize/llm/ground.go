package llm

import (
	"iter"
	"strings"

	"compactd/internal/summarize/snippet"
)

// unverified replaces a name in an answer that is not in its prompt.
const unverified = "[unverified]"

// minName is the least length of names that are checked.
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

// grounded replaces identifiers that are not in the prompt: the model made them up, or has them from
// somewhere else. Identifiers are words of capitals, and words of letters and digits, that are too long for
// chance.
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
		for from, to := range snippet.Words(s) {
			from = to - len(strings.TrimLeft(s[from:to], "-_#"))
			to = from + len(strings.TrimRight(s[from:to], "-_#"))
			if from < to && !yield(span{from, to}) {
				return
			}
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
	return letters > 0 && (!small || snippet.Digits(w) > 0)
}

// span is a part of a text, in bytes.
type span struct{ from, to int }
