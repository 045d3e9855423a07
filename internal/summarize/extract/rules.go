package extract

import (
	"slices"
	"strings"

	"compactd/internal/summarize/snippet"
)

// Rules are carried whole, before all other text. Rules that still do not fit have a fold, the last line of
// their section, with their turns.

const (
	// ruleUnits bounds a rule: longer texts are not sentences.
	ruleUnits = 2_000
	// ruleFold bounds the turns in the fold of the rules, in units.
	ruleFold = 480
)

// foreignLabel begins a rule of a model that no user wrote.
const foreignLabel = "not from the user: "

// RulesOf returns the rules of a summary (C1): first those of the previous summary and of the user, in their
// words, then a model's. A model's rule with the meaning of a known one is left out. One without the words of
// any user is foreign, and labelled: a file, a page or a tool requested it.
func (d *Digest) RulesOf(written []Line) (rules, foreign []Line) {
	rules, more := d.userRules()
	known := PhrasesOf(rules)
	for _, l := range written {
		o := PhraseOf(l.Text)
		switch {
		case foldLine().MatchString(l.Text), anyHolds(known, o, SamePercent):
		case slices.ContainsFunc(d.userPhrases, func(s Phrase) bool { return s.holds(o, usersPercent) && share(o.content, s.content) >= restatedPercent }):
			rules = append(rules, l)
			known = append(known, o)
		default:
			l.Text = foreignLabel + strings.TrimPrefix(strings.TrimPrefix(l.Text, foreignLabel), aboutLabel)
			foreign = append(foreign, l)
		}
	}
	return more.behind(rules), foreign
}

// userRules returns the rules of the previous summary and of the range, in order, and the fold of rules that
// did not fit.
func (d *Digest) userRules() (rules []Line, more fold) {
	if d.Previous != nil {
		rules, more = unfolded(Parse(d.Previous.Text)[Rules])
	}
	return United(rules, d.rules), more
}

// unfolded separates the fold from the rules of a summary.
func unfolded(lines []Line) (rules []Line, more fold) {
	for _, l := range lines {
		if f, ok := foldOf(l.Text); ok {
			more = more.with(f)
		} else {
			rules = append(rules, l)
		}
	}
	return rules, more
}

// behind appends the line of a fold to the rules.
func (f fold) behind(rules []Line) []Line {
	if f.count == 0 {
		return rules
	}
	return append(rules, f.ruleLine(ruleFold))
}

func (f fold) ruleLine(units int) Line {
	text, turns := f.text(units)
	return Line{Text: text, Turns: turns}
}

// rulesCost is the size of a section of rules, in units.
func rulesCost(section []Line) (n int) {
	for _, l := range section {
		n += snippet.TextCost(l.String())
	}
	if n > 0 {
		n += snippet.TextCost("## "+titles[Rules]) + 1
	}
	return n
}

// foldFrame is the largest size of a section of rules without them and the turns of its fold, in units.
const foldFrame = 120

// fitRules returns the rules of a section that fit, and a fold of the others. The oldest take at most half of
// the room, the newest the rest.
func fitRules(section []Line, room int) []Line {
	if rulesCost(section) <= room {
		return section
	}
	rules, more := unfolded(section)
	units := max(min(ruleFold, room/foldShare), minLine)
	left := room - foldFrame - units
	kept := make([]bool, len(rules))
	newest := left - left/2
	for i := range rules { // the oldest, in their order
		cost := snippet.TextCost(rules[i].String())
		if left-cost < newest {
			break
		}
		kept[i], left = true, left-cost
	}
	for i := range slices.Backward(rules) {
		if cost := snippet.TextCost(rules[i].String()); !kept[i] && cost <= left {
			kept[i], left = true, left-cost
		}
	}
	var out []Line
	for i, l := range rules {
		if kept[i] {
			out = append(out, l)
			continue
		}
		more = more.with(fold{1, turnsOf(l.Turns)})
	}
	if out = append(out, more.ruleLine(units)); rulesCost(out) > room {
		return nil // not even the fold has room
	}
	return out
}

// turnsOf are the first and the last turn of a line: turns between them need not have it.
func turnsOf(t [2]int64) [][2]int64 { return [][2]int64{{t[0], t[0]}, {t[1], t[1]}} }
