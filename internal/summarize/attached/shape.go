package attached

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/lazyregexp"
)

// Forms of lines that no sentence has.
var (
	// fileName is a file or an address.
	fileName = lazyregexp.New(`(?:^|[\s('"\x60@])(?:https?://\S+|[~.]?/?(?:[\w.-]+/)*[\w-]+\.[a-z][a-z0-9]{0,4})(?:[\s)'"\x60,:;?!]|$)`)
	// assigned is a line of settings or code, positioned one of a program's output.
	assigned = lazyregexp.New(`^[\w.-]+\s*(?:=|:=|\+=)\s*\S|^[\w./-]+:\d+[:\s]|^\S+@\S+[:~]|^[A-Z]+:\S|^EOF\b|^(?:bq|bc|h[1-6]|pre|notextile)\.\.? |^\w+\(.*\)\s*[{;]?$`)
	// lastLine is how a pager or a program ends a text.
	lastLine      = lazyregexp.New(`(?:^|\s)[\[(<*-]+\s*(?:END|EOF|End of [\w ]{1,20}|More)\s*[\])>*-]+$`)
	arrow         = lazyregexp.New(`\s(?:=>|->|→|—>|\|)\s`)
	dashed        = lazyregexp.New(`^(.{1,40}?)\s(?:-|–|—)\s`)
	labelled      = lazyregexp.New(`^(.{1,60}?)(?:\*{1,2})?(?:: ?\*{1,2}\s|:\s|：)`)
	clockTime     = lazyregexp.New(`\b\d{1,2}:\d{2}\b`)
	endsInAddress = lazyregexp.New(`://\S+$`)
	columns       = lazyregexp.New(`[^\s.!?:;,)] {3,}\S|  \||[^\s.!?:;,)]  +\S.*[^\s.!?:;,)]  +\S`)
	boldLine      = lazyregexp.New(`^(?:\*\*.*\*\*|__.*__)$`)
	ruledOff      = lazyregexp.New(`^[\p{P}\p{S}]{3,}`)
	sentenceAt    = lazyregexp.New(`[.!?。！？…;,)؟।]["'”»*_)]*$`)
)

// isOutput reports a line of a program.
func isOutput(s string) bool {
	if strings.ContainsAny(s, "=:@(.") && assigned().MatchString(s) || isEnd(s) || strings.HasPrefix(s, "BEGIN ") || strings.HasPrefix(s, "END ") {
		return true
	}
	r, _ := utf8.DecodeRuneInString(s)
	return !unicode.IsLetter(r) && ruledOff().MatchString(s) && !strings.HasPrefix(s, "...") && !strings.HasPrefix(s, "**")
}

// isEnd reports a line that ends a text.
func isEnd(s string) bool {
	return s != "" && strings.IndexByte("])>*-", s[len(s)-1]) >= 0 && lastLine().MatchString(s)
}

// isColumns reports a line with bars or gaps that no sentence has: a wide one, or more than one
// within sentences.
func isColumns(s string) bool {
	return strings.Count(s, " | ") > 1 || strings.Contains(s, "  ") && columns().MatchString(unlisted(s))
}

// isMapping reports a line that leads from one name to another, below which the user may continue.
func isMapping(s string) bool {
	return (strings.ContainsAny(s, ">|") || strings.Contains(s, "→")) && arrow().MatchString(s)
}

// isAside reports a line with a name before a dash: it is no sentence of the user, but the lines below it may
// be.
func isAside(s string) bool {
	if !strings.Contains(s, " - ") && !strings.ContainsAny(s, "–—") {
		return false
	}
	m := dashed().FindStringSubmatch(unlisted(s))
	return m != nil && !isOwnLabel(m[1]) && !hasVoice(m[1]) && len(strings.Fields(m[1])) <= 4
}

// unlisted is a line without the marks before its first word.
func unlisted(s string) string {
	s = s[len(placeholder().FindString(s)):]
	s = s[len(listItem().FindString(s)):]
	return strings.TrimLeft(s, "*_¡¿# ")
}

// isSpeech reports a line that names a speaker, or the kind of the text after it.
func isSpeech(s string) bool {
	if !strings.Contains(s, ":") && !strings.Contains(s, "：") {
		return false
	}
	m := labelled().FindStringSubmatch(unlisted(s))
	return m != nil && !isOwnLabel(m[1][lastSentence(m[1]):])
}
