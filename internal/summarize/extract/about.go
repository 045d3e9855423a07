package extract

import (
	"slices"
	"strings"

	"compactd/internal/summarize/claim"
	"compactd/internal/summarize/snippet"
)

// aboutPercent is the share of a rule's content that makes a line be about it.
const aboutPercent = 60

// ruleMatter finds the rules that a line is about.
type ruleMatter struct {
	rules  []Phrase
	byStem map[string][]int
}

// maxRuleStems bounds the rules of one stem, so that the cost of a line does not grow with the rules.
const maxRuleStems = 64

func newRuleMatter(rules []Line) *ruleMatter {
	all := &ruleMatter{byStem: map[string][]int{}}
	for _, l := range rules {
		p := Phrase{content: content(l.Text), text: l.Text, meaning: meaningOf(l.Text)}
		if len(p.content) == 0 {
			continue
		}
		for _, w := range p.content {
			if len(all.byStem[w]) < maxRuleStems {
				all.byStem[w] = append(all.byStem[w], len(all.rules))
			}
		}
		all.rules = append(all.rules, p)
	}
	return all
}

// about lists the rules that have most of their content in a line, and reports whether the line touches the
// matter of any rule.
func (m *ruleMatter) about(line []string) (most []*Phrase, touches bool) {
	hits, rare := map[int]int{}, map[int]bool{}
	for _, w := range line {
		for _, i := range m.byStem[w] {
			hits[i]++
			rare[i] = rare[i] || !commonStems[w]
		}
	}
	for i, n := range hits {
		if n >= 2 && n*100 >= len(m.rules[i].content)*aboutPercent {
			most = append(most, &m.rules[i])
		}
		touches = touches || n >= 2 || rare[i]
	}
	return most, touches
}

// isAboutRule reports a line on the matter of a rule that does not restate it: it has more content, or the
// opposite. A denied consent restates a ban.
func (d *Digest) isAboutRule(text string) bool {
	if d.matter == nil {
		rules, _ := d.userRules()
		d.matter = newRuleMatter(rules)
	}
	all, touches := d.matter.about(content(text))
	kind, rest := claim.Of(text)
	if len(all) == 0 {
		return touches && kind <= claim.Denial && claim.Lifts(text) // a consent that the user gave is no claim
	}
	if kind == claim.Denial {
		rest = "not " + rest
	}
	what := meaningOf(rest)
	if kind != claim.Approval && !claim.Lifts(text) && slices.ContainsFunc(all, func(r *Phrase) bool { return keeps(text, r) }) {
		return false
	}
	return kind == claim.Approval || !slices.ContainsFunc(all, func(r *Phrase) bool { return what.borne(&r.meaning) == 100 })
}

// keeps reports a line that states a fact beside a ban: the act was not done, or its object is there or
// unchanged.
func keeps(text string, rule *Phrase) bool {
	lower := snippet.Lowered(text)
	if rule.meaning.negators == 0 && !onConsent().MatchString(snippet.Lowered(rule.text)) || onRules().MatchString(lower) || goesOn().MatchString(strings.ReplaceAll(lower, " but not ", " not ")) {
		return false
	}
	if untouched().MatchString(lower) || exists().MatchString(lower) && !strings.Contains(lower, " to ") {
		return true
	}
	for _, m := range undone().FindAllStringSubmatch(lower, -1) {
		if act := content(m[1]); changed[m[1]] || len(act) > 0 && slices.Contains(rule.content, act[0]) {
			return true
		}
	}
	return false
}
