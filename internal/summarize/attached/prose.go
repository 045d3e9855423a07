package attached

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/summarize/snippet"
)

// prose reads a line that begins as a sentence does, and reports whether what follows it can
// be the user's.
func (c *splitter) prose(l *line) bool {
	c.list = listItem.MatchString(l.text)
	start := l.from + strings.Index(c.s[l.from:l.to], l.text)
	if p := placeholder.FindString(l.text); len(p) < len(l.text) {
		start += len(p)
	}
	switch {
	case placeholder.FindString(l.text) == l.text:
		c.take(l.from, l.to)
		return true
	case isOutput(l.text), isColumns(l.text), isSpeech(l.text):
		if c.isNote(l.text) {
			c.own = nil
		}
		return false
	case isMapping(l.text):
		return true
	case c.isTitle(l):
		c.take(start, start+lastSentence(c.s[start:l.to]))
		return c.bounded(l)
	case isAside(l.text):
		return !strings.Contains(l.text, "://")
	}
	text := strings.TrimSpace(c.s[start:l.to])
	if n := announced(text, c.gap()); n >= 0 {
		if from, to := conclusion(text, n); from < to {
			c.take(start+from, start+to)
			return false
		}
		c.take(start, start+withoutRule(text, n))
		return n >= len(text) && c.bounded(l)
	}
	if n := foreignTag(text, c.closers); n >= 0 {
		c.take(start, start+withoutRule(text, n))
		return false
	}
	c.take(start, l.to)
	return true
}

func (c *splitter) take(from, to int) {
	if from < to {
		c.own = append(c.own, span{from, to})
		c.total += to - from
	}
}

// withoutRule returns where the last sentence of the first n bytes of a line begins if it
// could be a rule, else n: half a rule is none.
func withoutRule(s string, n int) int {
	from := lastSentence(s[:n])
	lower := snippet.Lowered(s[from:n])
	if snippet.Matches(lower, snippet.RuleWords) || snippet.Matches(lower, snippet.ChoiceWords) {
		return from
	}
	return n
}

// lastSentence returns where the last sentence of a line begins.
func lastSentence(s string) int {
	s = strings.TrimRight(s, " .!?。！？;")
	for i := len(s); ; {
		if i = strings.LastIndexAny(s[:i], ".!?。！？;"); i < 0 {
			return 0
		}
		_, w := utf8.DecodeRuneInString(s[i:])
		if w > 1 || strings.HasPrefix(s[i+w:], " ") {
			return i + w
		}
	}
}

// gap reports an empty line below the one that is read.
func (c *splitter) gap() bool {
	return c.at+1 < len(c.all) && c.all[c.at+1].text == ""
}

// bounded reports that below a line which announces other text stands a structure with an
// end, so that the user's words may go on behind it. A line which names a file does not: the
// structure may be in the file.
func (c *splitter) bounded(l *line) bool {
	next := c.ahead()
	if next == nil || fileName.MatchString(l.text) || !strings.HasSuffix(l.text, ":") && !strings.HasSuffix(l.text, "?") && !strings.HasSuffix(l.text, ".") {
		return false
	}
	return isFence(next.text) || next.text[0] == '>'
}

var (
	// fileName is a file or an address.
	fileName = regexp.MustCompile(`(?:^|[\s('"\x60@])(?:https?://\S+|[~.]?/?(?:[\w.-]+/)*[\w-]+\.[a-z][a-z0-9]{0,4})(?:[\s)'"\x60,:;?!]|$)`)
	// assigned is a line of settings or code, positioned one of a program's output.
	assigned      = regexp.MustCompile(`^[\w.-]+\s*(?:=|:=|\+=)\s*\S|^[\w./-]+:\d+[:\s]|^\S+@\S+[:~]|^[A-Z]+:\S|^EOF\b|^(?:bq|bc|h[1-6]|pre|notextile)\.\.? |^\w+\(.*\)\s*[{;]?$`)
	arrow         = regexp.MustCompile(`\s(?:=>|->|→|—>|\|)\s`)
	dashed        = regexp.MustCompile(`^(.{1,40}?)\s(?:-|–|—)\s`)
	labelled      = regexp.MustCompile(`^(.{1,60}?)(?:\*{1,2})?(?:: ?\*{1,2}\s|:\s|：)`)
	clockTime     = regexp.MustCompile(`\b\d{1,2}:\d{2}\b`)
	endsInAddress = regexp.MustCompile(`://\S+$`)
	columns       = regexp.MustCompile(`[^\s.!?:;,)] {3,}\S|  \||[^\s.!?:;,)]  +\S.*[^\s.!?:;,)]  +\S`)
	boldLine      = regexp.MustCompile(`^(?:\*\*.*\*\*|__.*__)$`)
	ruledOff      = regexp.MustCompile(`^[\p{P}\p{S}]{3,}`)
	sentenceAt    = regexp.MustCompile(`[.!?。！？…;,)؟।]["'”»*_)]*$`)
)

// isOutput reports a line of a program.
func isOutput(s string) bool {
	if strings.ContainsAny(s, "=:@(.") && assigned.MatchString(s) || strings.HasPrefix(s, "BEGIN ") || strings.HasPrefix(s, "END ") {
		return true
	}
	r, _ := utf8.DecodeRuneInString(s)
	return !unicode.IsLetter(r) && ruledOff.MatchString(s) && !strings.HasPrefix(s, "...") && !strings.HasPrefix(s, "**")
}

// isColumns reports a line with gaps that no sentence has: a wide one, or more than one within
// sentences.
func isColumns(s string) bool {
	return strings.Contains(s, "  ") && columns.MatchString(unlisted(s))
}

// isMapping reports a line that leads from one name to another, which the user may go on below.
func isMapping(s string) bool {
	return (strings.ContainsAny(s, ">|") || strings.Contains(s, "→")) && arrow.MatchString(s)
}

// isAside reports a line with a name before a dash: no sentence of the user, while those below
// it may be.
func isAside(s string) bool {
	if !strings.Contains(s, " - ") && !strings.Contains(s, " – ") && !strings.Contains(s, " — ") {
		return false
	}
	m := dashed.FindStringSubmatch(unlisted(s))
	return m != nil && !isOwnLabel(m[1]) && !hasVoice(m[1]) && len(strings.Fields(m[1])) <= 4
}

func unlisted(s string) string {
	s = s[len(placeholder.FindString(s)):]
	s = s[len(listItem.FindString(s)):]
	return strings.TrimLeft(s, "*_¡¿# ")
}

// isSpeech reports a line that names who speaks, or what the text behind it is.
func isSpeech(s string) bool {
	if !strings.Contains(s, ":") && !strings.Contains(s, "：") {
		return false
	}
	s = unlisted(s)
	m := labelled.FindStringSubmatch(s)
	return m != nil && !isOwnLabel(m[1][lastSentence(m[1]):])
}

// isTitle reports a line that names the text below it.
func (c *splitter) isTitle(l *line) bool {
	s := unlisted(l.text)
	bare := strings.TrimRight(s, "*_` ")
	switch {
	case c.ahead() == nil, strings.HasPrefix(l.text, "#"):
		return false
	case strings.HasSuffix(bare, ":"), strings.HasSuffix(bare, "："):
		return !isOwnLabel(strings.TrimRight(bare, ":：*_ "))
	case mailGreeting.MatchString(s):
		m := mailGreeting.FindStringSubmatch(s)
		return !agentName.MatchString(m[1])
	case endsInAddress.MatchString(bare):
		return !hasVoice(s)
	case sentenceAt.MatchString(bare), c.list:
		return false
	case boldLine.MatchString(l.text):
		return !ruleWord(labelWords(bare)) && !snippet.Matches(snippet.Lowered(s), snippet.RuleWords)
	}
	return !hasVoice(s) && !c.wrapped(s) && !c.headsRules(s)
}

// headsRules reports a heading such as "Constraints" above a list.
func (c *splitter) headsRules(s string) bool {
	all := labelWords(s)
	return len(all) > 0 && len(all) <= 2 && ruleNouns[all[len(all)-1]] && listItem.MatchString(c.ahead().text)
}

// wrapped reports a line that the next one goes on with.
func (c *splitter) wrapped(s string) bool {
	if utf8.RuneCountInString(s) < 40 || c.gap() {
		return false
	}
	r, _ := utf8.DecodeRuneInString(c.ahead().text)
	return unicode.IsLower(r)
}

// foreignSpeech returns the end of the first of words that is not the user's own speech, -1 for
// none. A verb that ends its sentence has no words behind it: "as the ticket states."
func foreignSpeech(lower string, words *snippet.Phrases, verb bool) int {
	for at := 0; ; {
		from, to := snippet.Find(lower[at:], words)
		if from < 0 {
			return -1
		}
		from, to = at+from, at+to
		rest := strings.TrimLeft(lower[to:], " ")
		ends := verb && (rest == "" || strings.IndexByte(".,;!?)", rest[0]) >= 0)
		if !ends && !isSelf(lower[max(0, from-30):from]) {
			return to
		}
		at = to
	}
}

// pointerBytes are those at the end of a line in which a pointer to the text below it stands.
const pointerBytes = 80

// announced returns where a sentence of a line announces other text, -1 for nowhere: all
// behind it is attached.
func announced(s string, gap bool) int {
	lower := snippet.Lowered(s)
	if len(lower) != len(s) {
		lower = s
	}
	if strings.HasSuffix(s, ":") && isOwnLabel(strings.TrimRight(s, ":* ")) {
		return -1
	}
	first := -1
	for _, words := range []*snippet.Phrases{presenting, speaking} {
		if to := foreignSpeech(lower, words, words == speaking); to >= 0 && (first < 0 || to < first) {
			first = to
		}
	}
	if first >= 0 {
		return first
	}
	if gap && demonstrative.MatchString(lower[max(0, len(lower)-pointerBytes):]) {
		return len(lower)
	}
	if m := mentioned(lower); m >= 0 {
		return m
	}
	if m := quoted(s); m >= 0 {
		return m
	}
	return inserted(s)
}

func isCJK(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// foreignTag returns where an element begins within a line, -1 for none: a tag that is never
// closed is a word of code.
func foreignTag(s string, closers map[string]int) int {
	for _, m := range inlineTag.FindAllStringSubmatchIndex(s, -1) {
		if _, ok := closers[strings.ToLower(s[m[2]:m[3]])]; ok {
			return m[0]
		}
	}
	return -1
}

// quoteWords is from how many words on a quotation is a text, and not a word.
const quoteWords = 5

var quotation = regexp.MustCompile(`["“«„「『][^"“”«»„」』]*(["”»“」』]|$)`)

// slightQuotation is one in marks that commands and apostrophes have too: it counts if it has a rule.
var slightQuotation = regexp.MustCompile(`\B'\S.*?(?:'\B|$)|\x60[^\x60]+(?:\x60|$)`)

// quoted returns where a quotation of some length begins, -1 for none.
func quoted(s string) int {
	for _, m := range quotation.FindAllStringSubmatchIndex(s, -1) {
		in := s[m[0]:m[1]]
		if len(strings.Fields(in)) >= quoteWords || utf8.RuneCountInString(in) > 60 || m[2] == m[3] || isCJKText(in) && utf8.RuneCountInString(in) > 8 {
			return m[0]
		}
	}
	for _, m := range slightQuotation.FindAllStringIndex(s, -1) {
		in := s[m[0]:m[1]]
		if snippet.Matches(snippet.Lowered(in), snippet.RuleWords) && (len(strings.Fields(in)) >= quoteWords || isCJKText(in)) {
			return m[0]
		}
	}
	return -1
}

func isCJKText(s string) bool { return strings.ContainsFunc(s, isCJK) }
