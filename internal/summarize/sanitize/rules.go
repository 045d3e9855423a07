package sanitize

import (
	_ "embed" // the rules
	"fmt"
	"strconv"
	"strings"
)

// The rules of gitleaks, which tools/gitleaks writes, and our own.
var (
	//go:embed rules/gitleaks.txt
	gitleaksRules string
	//go:embed rules/own.txt
	ownRules string
)

// readRules reads rules. A line is a name and an expression; the lines below it that begin
// with a tab set the other fields of the rule. A # begins a comment.
func readRules(text string) (rules []rule, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
		case line[0] != '\t':
			rules = append(rules, rule{name: key, expr: value})
		default:
			if err := rules[len(rules)-1].set(key[1:], value); err != nil {
				return nil, fmt.Errorf("%s: %w", rules[len(rules)-1].name, err)
			}
		}
	}
	return rules, nil
}

// set sets a field. Expressions and words belong to the list that was allowed last.
func (r *rule) set(field, value string) (err error) {
	last := len(r.allow) - 1
	switch field {
	case "entropy":
		r.entropy, err = strconv.ParseFloat(value, 64)
	case "group":
		r.group, err = strconv.Atoi(value)
	case "plain":
		r.plain = plains[value]
	case "allow":
		r.allow = append(r.allow, allowed{target: value})
	case "expr":
		r.allow[last].exprs = append(r.allow[last].exprs, value)
	case "words":
		r.allow[last].words = append(r.allow[last].words, strings.Fields(value)...)
	default:
		err = fmt.Errorf("a rule has no %s", field)
	}
	return err
}

// plains are what a rule may call plain.
var plains = map[string]func(secret string) bool{"example": example, "unvaried": unvaried, "unmixed": unmixed}

// example reports a secret of documentation: its text is marked as one, or repeats itself.
func example(s string) bool {
	low := strings.ToLower(s)
	return strings.Contains(low, "example") || strings.Contains(low, "xxxx") || strings.Contains(low, "your") || strings.Contains(low, "....") || entropy(s) < 2.6
}

// unvaried reports words with dashes that happen to begin as a secret does.
func unvaried(s string) bool {
	m := mixOf(s)
	return example(s) || m.digits < 2 || m.letters < 4 || entropy(s) < 3.2 || dashedWords(s)
}

// unmixed reports what is no random text of small and large letters and digits.
func unmixed(s string) bool {
	m := mixOf(s)
	return example(s) || m.digits < 3 || m.small < 6 || m.letters-m.small < 6 || entropy(s) < 4.2
}
