package attached

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/lazyregexp"
	"compactd/internal/summarize/snippet"
)

// foreign returns the beginning of the text of others in a line, -1 for none: everything after it is
// attached.
func (c *splitter) foreign(s string) int {
	if c.pointsBelow(s) {
		return len(s)
	}
	if strings.HasSuffix(s, ":") && isOwnLabel(strings.TrimRight(s, ":* ")) {
		return foreignTag(s, c.closers)
	}
	return earliest(c.announced(s), mentioned(s), setApart(s), foreignTag(s, c.closers))
}

// earliest is the first of places, where -1 is nowhere.
func earliest(all ...int) int {
	first := -1
	for _, n := range all {
		if n >= 0 && (first < 0 || n < first) {
			first = n
		}
	}
	return first
}

// pointerBytes bounds the end of a line in which a pointer to the text below it is searched.
const pointerBytes = 80

// announced returns the end of the words in a line that announce other text, -1 for none.
func (c *splitter) announced(s string) int {
	lower := lowered(s)
	if at := endsOrder().FindStringIndex(lower); at != nil && len(c.own) == 0 && at[0] <= pointerBytes && ordered().MatchString(lower[:at[0]]) {
		return at[1]
	}
	n := earliest(foreignSpeech(lower, presenting, false), foreignSpeech(lower, speaking, true))
	if n < 0 && c.gap() && demonstrative().MatchString(lower[max(0, len(lower)-pointerBytes):]) {
		return len(lower)
	}
	return n
}

// endsOrder ends the first clause of a line that is an order or a question.
var endsOrder = lazyregexp.New(`\s?[:?：？]\s*`)

// lowered is a text in small letters with each byte in its place, if that is possible.
func lowered(s string) string {
	if lower := snippet.Lowered(s); len(lower) == len(s) {
		return lower
	}
	return s
}

// foreignSpeech returns the end of the first of words that is not the user's own speech, -1 for none. A verb
// at the end of its sentence has no words after it: "as the ticket states."
func foreignSpeech(lower string, words *snippet.Phrases, verb bool) int {
	for from, to := range snippet.Each(lower, words) {
		rest := strings.TrimLeft(lower[to:], " ")
		ends := verb && (rest == "" || strings.IndexByte(".,;!?)", rest[0]) >= 0)
		if !ends && !isSelf(lower[max(0, from-30):from]) {
			return to
		}
	}
	return -1
}

// namesText reports a line with a name of a text; other lines mention none.
func namesText(lower string) bool {
	for w := range strings.FieldsFuncSeq(lower, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }) {
		if named[w] {
			return true
		}
	}
	return false
}

// mentioned returns the end of the sentence of a line that mentions a text of others, -1 for none.
func mentioned(s string) int {
	lower := lowered(s)
	first := -1
	if at := accordingTo().FindStringIndex(lower); at != nil {
		first = at[1]
	} else if !namesText(lower) {
		return -1
	}
	for _, m := range mentions {
		if at := m().FindStringIndex(lower); at != nil {
			first = earliest(first, at[1])
		}
	}
	if first < 0 {
		return -1
	}
	first = max(0, first-1)
	if i := sentenceEnd().FindStringIndex(lower[first:]); i != nil {
		return first + i[1]
	}
	return len(lower)
}

var sentenceEnd = lazyregexp.New(`[.!?:]\s|[。！？]`)

// Text that is set apart within a sentence.
var (
	quotation = lazyregexp.New(`["“«„「『][^"“”«»„」』]*(["”»“」』]|$)`)
	// aside is in marks that commands and apostrophes have too, in a parenthesis with more of
	// the sentence behind it, or between dashes: it counts if it has a rule.
	aside = lazyregexp.New(`(\B'\S.*?(?:'\B|$)|\x60[^\x60]+(?:\x60|$))|\(([^()]*)(?:\)[^.!?]*\p{L}|$)|\s[-–—]+\s(.*?)\s[-–—]+\s`)
)

// setApart returns the place of a text of some length within a sentence, -1 for none.
func setApart(s string) int {
	for _, m := range quotation().FindAllStringSubmatchIndex(s, -1) {
		if m[2] == m[3] || isText(s[m[0]:m[1]]) {
			return m[0]
		}
	}
	if !strings.ContainsAny(s, "'`(–—") && !strings.Contains(s, " -") {
		return -1
	}
	for _, m := range aside().FindAllStringSubmatchIndex(s, -1) {
		from, to := max(m[2], m[4], m[6]), max(m[3], m[5], m[7])
		within := m[2] >= 0 || m[0] > 0
		if within && isText(s[from:to]) && snippet.Matches(snippet.Lowered(s[from:to]), snippet.RuleWords) {
			return m[0]
		}
	}
	return -1
}

// isText reports a text with too many words for the name of a thing.
func isText(s string) bool {
	n := utf8.RuneCountInString(s)
	return len(strings.Fields(s)) >= 5 || n > 60 || n > 8 && strings.ContainsFunc(s, snippet.Unspaced)
}

// foreignTag returns the beginning of an element within a line, -1 for none: a tag that is never closed is a
// word of code.
func foreignTag(s string, closers map[string]int) int {
	for _, m := range inlineTag().FindAllStringSubmatchIndex(s, -1) {
		if _, ok := closers[strings.ToLower(s[m[2]:m[3]])]; ok {
			return m[0]
		}
	}
	return -1
}

// conclusion returns the place of the user's own conclusion in a line with words of others.
func conclusion(s string, foreign int) (from, to int) {
	if m := relayed().FindStringSubmatchIndex(s); m != nil && m[2] >= foreign {
		return m[2], m[1]
	}
	return 0, 0
}
