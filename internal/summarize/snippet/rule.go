package snippet

import (
	"iter"
	"slices"
	"strings"
	"unicode"

	"compactd/internal/lazyregexp"
)

// IsRule reports a sentence of a user that is a rule: it has a word of one beside those that
// state a fact, a pair of such words, a clause that forbids, or a choice. A fact that reads like
// a rule costs room; a rule that is lost costs trust. So the doubtful ones are rules.
func IsRule(sentence string) bool {
	lower := Lowered(sentence)
	return Matches(lower, ChoiceWords) || opening().MatchString(lower) || hasRuleWord(lower) || forbids(lower) ||
		slices.ContainsFunc(pairs, func(p pair) bool { return p.in(lower) })
}

// hasRuleWord reports a word of a rule beside those that state a fact.
func hasRuleWord(lower string) bool {
	if !Matches(lower, RuleWords) {
		return false
	}
	lower = idioms.Replace(lower)
	for _, s := range statements {
		if Matches(lower, s.cues) {
			lower = s.form().ReplaceAllString(lower, " ")
		}
	}
	if Matches(lower, happened.cues) {
		first, _, _ := strings.Cut(lower, " ")
		subject := subjects[first] && !Matches(lower, modals)
		lower = happened.form().ReplaceAllStringFunc(lower, func(s string) string {
			words := strings.Fields(s)
			before, verb := words[0], strings.TrimRight(words[len(words)-1], ".,;!")
			if normWords[before] || wishWords[verb] || !failing[verb] && !subject && !subjects[before] {
				return s
			}
			return " "
		})
	}
	return Matches(lower, RuleWords)
}

// opening is the head of a sentence with a request to stop or to prefer: "Stop adding comments.",
// "Tabs, not spaces."
var opening = lazyregexp.New(`^[\s\p{P}]*(?:(?:please|bitte|and|also|but|ok|okay|then),? )*(?:(?:stop|quit) \p{L}+ing|prefer|(?:\p{L}+ ){0,2}\p{L}+, not (?:\p{L}+ ?){1,3})(?:$|[^\p{L}])`)

// forbids reports a sentence with a clause that forbids, by the grammar of its language.
func forbids(lower string) bool {
	banned := ban().MatchString(lower)
	fact := banned && statesFact().MatchString(lower)
	if banned && !fact {
		return true
	}
	first := true
	for words := range clauses(lower) {
		if !first && bansByName[words[0]] && len(words) > 1 && !statesFact().MatchString(strings.Join(words, " ")) || forbidsClause(words, fact) {
			return true
		}
		first = false
	}
	return false
}

// forbidsClause reports a clause that forbids. In one that states a fact "no" is an English word.
func forbidsClause(words []string, fact bool) bool {
	n := len(words)
	return (!fact || words[0] != "no") && heads.forbid(words[0], at(words, 1)) ||
		lasts.forbid(words[n-1], at(words, n-2)) || behindVerb(words) || forbidsInfinitive(words)
}

// at is a word of a clause, "" for none.
func at(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return ""
	}
	return words[i]
}

// clauses lists the words of each clause of a sentence, from the first that is no filler.
func clauses(lower string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for part := range strings.FieldsFuncSeq(lower, endsClause) {
			for words := strings.FieldsFunc(part, endsWord); len(words) > 0; {
				n := slices.IndexFunc(words, func(w string) bool { return clauseWords[w] })
				clause, next := words, len(words)
				if n >= 0 {
					clause, next = words[:n], n+1
				}
				words = words[next:]
				for len(clause) > 1 && fillers[clause[0]] {
					clause = clause[1:]
				}
				if len(clause) > 0 && !yield(clause) {
					return
				}
			}
		}
	}
}

func endsClause(r rune) bool { return strings.ContainsRune(",;:!，；：、،؛–—", r) }

func endsWord(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.M, unicode.N) && r != '_' && r != '\''
}

// forbidsInfinitive reports a clause that ends in a negated infinitive.
func forbidsInfinitive(words []string) bool {
	n := len(words)
	return infinitive.has(words[n-1]) && (infinitiveNot.has(at(words, n-2)) || infinitiveNot.has(at(words, n-3))) && !slices.ContainsFunc(words, finite.has)
}

// behindVerb reports a clause that begins with a verb and negates it: "Lösche auth nicht".
func behindVerb(words []string) bool {
	for i := range bansBehind {
		b := &bansBehind[i]
		if b.facts.has(words[0]) || b.not.has(words[0]) {
			continue
		}
		if at := slices.IndexFunc(words, b.not.has); at > 0 && (at == 1 || !b.states.has(words[at-1])) {
			return true
		}
	}
	return false
}

// negation is how languages forbid: with a word at a place in the clause. The verb beside it
// shows whether the clause forbids or states.
type negation struct {
	not    shapes
	facts  shapes // of a verb at the other side of it
	states shapes // of a verb before it, where another one begins the clause
}

type negations []negation

// joinedBytes is more than a negation has that is a word of its own: a longer one holds its verb.
const joinedBytes = 6

// forbid reports that word negates a clause, and that the word beside it is no fact's.
func (all negations) forbid(word, beside string) bool {
	found := false
	for i := range all {
		if n := &all[i]; n.not.has(word) {
			if n.facts.has(beside) || n.facts.has(word) {
				return false
			}
			found = true
		}
	}
	return found && (beside != "" || len(word) > joinedBytes)
}

// shapes are words, and beginnings and ends of words.
type shapes struct {
	words   map[string]bool
	affixes [][2]string
}

// newShapes reads a list: "word", "begin-", "-end", "begin-end".
func newShapes(list string) shapes {
	s := shapes{words: map[string]bool{}}
	for w := range strings.FieldsSeq(list) {
		if begin, end, ok := strings.Cut(w, "-"); ok {
			s.affixes = append(s.affixes, [2]string{begin, end})
		} else {
			s.words[w] = true
		}
	}
	return s
}

func (s *shapes) has(w string) bool {
	if w == "" || s.words[w] {
		return w != ""
	}
	return slices.ContainsFunc(s.affixes, func(a [2]string) bool {
		return len(w) > len(a[0])+len(a[1]) && strings.HasPrefix(w, a[0]) && strings.HasSuffix(w, a[1])
	})
}
