package attached

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/summarize/snippet"
)

// prose reads a line that begins like a sentence, and reports whether the next lines can be the user's.
func (c *splitter) prose(l *line) bool {
	c.list = listItem().MatchString(l.text)
	place := placeholder().FindString(l.text)
	start := l.from + strings.Index(c.s[l.from:l.to], l.text) + len(place)
	text := strings.TrimSpace(c.s[start:l.to])
	switch {
	case text == "":
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
	return c.sentences(l, text, start)
}

// sentences takes the sentences before the text of others in a line.
func (c *splitter) sentences(l *line, text string, start int) bool {
	n := c.foreign(text)
	if n < 0 {
		c.take(start, l.to)
		return true
	}
	if from, to := conclusion(text, n); from < to {
		c.take(start+from, start+to)
		return false
	}
	c.take(start, start+withoutRule(text, n))
	return n >= len(text) && c.bounded(l)
}

func (c *splitter) take(from, to int) {
	if from < to {
		c.own = append(c.own, span{from, to})
		c.total += to - from
	}
}

// withoutRule returns the beginning of the last sentence in the first n bytes of a line if it could be a
// rule, else n: half a rule is no rule.
func withoutRule(s string, n int) int {
	if from := lastSentence(s[:n]); snippet.IsRule(s[from:n]) {
		return from
	}
	return n
}

// lastSentence returns the beginning of the last sentence of a line.
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

// replyBytes is the largest length of the first clause of an answer.
const replyBytes = 12

// isReply reports a line that answers the quotation above it, with a short clause first:
// "No. Always use v2."
func isReply(s string) bool {
	n := strings.IndexAny(s, ".!?,。！？，")
	return n >= 0 && n <= replyBytes
}

// gap reports an empty line below the current one.
func (c *splitter) gap() bool {
	return c.at+1 < len(c.all) && c.all[c.at+1].text == ""
}

// bounded reports a structure with an end below a line that announces other text, so that the user's words
// may continue after it. A line that names a file does not count: the structure may be in the file.
func (c *splitter) bounded(l *line) bool {
	next := c.ahead()
	return next != nil && !fileName().MatchString(l.text) && strings.ContainsAny(l.text[len(l.text)-1:], ":?.") && (isFence(next.text) || next.text[0] == '>')
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
	case mailGreeting().MatchString(s):
		return !agentName().MatchString(mailGreeting().FindStringSubmatch(s)[1])
	case endsInAddress().MatchString(bare):
		return !hasVoice(s)
	case sentenceAt().MatchString(bare), c.list:
		return false
	case boldLine().MatchString(l.text):
		return !anyIn(labelWords(bare), ruleNouns) && !snippet.Matches(snippet.Lowered(s), snippet.RuleWords)
	}
	return !hasVoice(s) && !c.wrapped(s) && !c.headsRules(s)
}

// headsRules reports a heading such as "Constraints" above a list.
func (c *splitter) headsRules(s string) bool {
	all := labelWords(s)
	return len(all) > 0 && len(all) <= 2 && ruleNouns[all[len(all)-1]] && listItem().MatchString(c.ahead().text)
}

// wrapped reports a line that continues in the next one.
func (c *splitter) wrapped(s string) bool {
	r, _ := utf8.DecodeRuneInString(c.ahead().text)
	return utf8.RuneCountInString(s) >= 40 && !c.gap() && unicode.IsLower(r)
}
