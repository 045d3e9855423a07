package extract

import (
	"slices"
	"strings"
	"unicode"

	"compactd/internal/summarize/snippet"
)

// words returns the words by which two texts are compared: numbers, and words of at least four letters, in
// lower case.
func words(s string) []string {
	all := strings.FieldsFunc(snippet.Lowered(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	all = slices.DeleteFunc(all, func(w string) bool { return len(w) < 4 && !unicode.IsDigit(rune(w[0])) })
	slices.Sort(all)
	return slices.Compact(all)
}

// Phrase is the meaning of a line for comparison: its words, and whether it is negated.
type Phrase struct {
	words    []string
	content  []string
	negated  bool
	question bool
	// text and meaning are those of a sentence of a user, or of a rule.
	text    string
	meaning meaning
}

var negations = snippet.NewPhrases(
	"avoid", "refused", "refuses", "declined", "rejected", "forbade", "forbids", "cannot", "can't", "do not", "don't", "dont", "forbidden", "must not", "mustn't", "never", "no", "not", "not even", "shouldn't",
	"stop", "without", "won't", "isn't", "doesn't", "didn't", "hasn't",
	"nicht", "kein", "keine", "keinen", "nie", "niemals", "ohne", "pas", "jamais", "sans", "nunca", "sin", "não", "sem", "non", "mai", "senza", "niet", "geen", "nooit", "zonder",
	"inte", "aldrig", "ikke", "nigdy", "bez", "nikdy", "не", "нет", "никогда", "нельзя", "без", "ніколи", "asla", "soha", "nem", "不", "没", "沒", "勿", "禁止", "ない", "ません", "않", "마세요", "لا", "لم", "ممنوع", "אסור", "नहीं", "không", "jangan", "tidak",
)

// PhraseOf returns the words of a line, and whether it negates.
func PhraseOf(s string) Phrase {
	return Phrase{words: words(s), content: content(s), negated: snippet.Matches(snippet.Lowered(s), negations), question: isQuestion(s) || strings.HasSuffix(strings.TrimSpace(s), "?")}
}

// holds reports whether s states the same as o, and not its opposite.
func (s Phrase) holds(o Phrase, percent int) bool {
	return s.negated == o.negated && s.Covers(o, percent)
}

// Covers reports whether s has at least percent of the words of o.
func (s Phrase) Covers(o Phrase, percent int) bool {
	known := 0
	for _, w := range o.words {
		if _, ok := slices.BinarySearch(s.words, w); ok {
			known++
		}
	}
	return len(o.words) > 0 && known*100 >= len(o.words)*percent
}

// PhrasesOf returns the phrase of each line.
func PhrasesOf(lines []Line) []Phrase {
	out := make([]Phrase, len(lines))
	for i, l := range lines {
		out[i] = PhraseOf(l.Text)
	}
	return out
}

// anyHolds reports whether one of all states the same as o.
func anyHolds(all []Phrase, o Phrase, percent int) bool {
	return slices.ContainsFunc(all, func(s Phrase) bool { return s.holds(o, percent) })
}

// Shares of words with which two lines are the same, and with which a rule is the user's.
const (
	SamePercent  = 70
	usersPercent = 60
	// restatedPercent is the share of a model's rule that one sentence of a user must have.
	restatedPercent = 80
)
