package extract

import (
	"slices"

	"compactd/internal/summarize/claim"
	"compactd/internal/summarize/snippet"
)

// aboutPercent is the share of a rule's content from which on a line is about it.
const aboutPercent = 60

// ruleMatter finds the rules that a line is about.
type ruleMatter struct {
	rules  []Phrase
	byStem map[string][]int
}

// maxRuleStems bounds the rules that one stem leads to, so that a line costs the same beside
// any number of rules.
const maxRuleStems = 64

func newRuleMatter(rules []Line) *ruleMatter {
	m := &ruleMatter{byStem: map[string][]int{}}
	for _, l := range rules {
		p := Phrase{content: content(l.Text), negators: negators(l.Text)}
		if len(p.content) < 2 {
			continue
		}
		for _, w := range p.content {
			if len(m.byStem[w]) < maxRuleStems {
				m.byStem[w] = append(m.byStem[w], len(m.rules))
			}
		}
		m.rules = append(m.rules, p)
	}
	return m
}

// about lists the rules that have most of their content in a line.
func (m *ruleMatter) about(line []string) (out []*Phrase) {
	hits := map[int]int{}
	for _, w := range line {
		for _, i := range m.byStem[w] {
			hits[i]++
		}
	}
	for i, n := range hits {
		if n >= 2 && n*100 >= len(m.rules[i].content)*aboutPercent {
			out = append(out, &m.rules[i])
		}
	}
	return out
}

// negators counts the negations of a line.
func negators(s string) (n int) {
	for lower := snippet.Lowered(s); ; n++ {
		_, to := snippet.Find(lower, negations)
		if to < 0 {
			return n
		}
		lower = lower[to:]
	}
}

// isAboutRule reports a line on the matter of a rule that does not restate it: it has more
// to say, or the opposite.
func (d *Digest) isAboutRule(text string) bool {
	if d.matter == nil {
		rules, _ := d.userRules()
		d.matter = newRuleMatter(rules)
	}
	line := content(text)
	all := d.matter.about(line)
	if len(all) == 0 {
		return false
	}
	kind, rest := claim.Of(text)
	negated := negators(text)
	return !slices.ContainsFunc(all, func(r *Phrase) bool {
		return kind != claim.Approval && negated == r.negators && share(content(rest), r.content) == 100
	})
}
