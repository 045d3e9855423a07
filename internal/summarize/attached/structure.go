package attached

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"compactd/internal/lazyregexp"
)

var (
	// openingTag is a tag of an element at the beginning of a line.
	openingTag = lazyregexp.New(`^<([A-Za-z_][\w:.-]*)`)
	closingTag = lazyregexp.New(`</([A-Za-z_][\w:.-]*)`)
	// inlineTag is one within a line.
	inlineTag = lazyregexp.New(`<([A-Za-z_][\w:.-]*)(?:\s[^<>]*)?>`)
	// placeholder replaces a part that a program removed from a message of the user.
	placeholder = lazyregexp.New(`^(?:\[(?:Image(?: #?\d+)?|image|document|secret)\]\s*)+`)
	// attribution names the source of the text above it.
	attribution = lazyregexp.New(`^(?:[—–―~]|--)\s?\S`)
	// listItem begins an item of a list.
	listItem = lazyregexp.New(`^(?:[-*+•·‣]|\(?\d{1,2}[.)]|\(?[a-z][.)])\s+(?:\[[ xX]\]\s+)?`)
	// emphasis may surround a word at the beginning of a line, and a command may precede it.
	emphasis = lazyregexp.New(`^(?:\*{1,3}|_{1,3}|¡|¿|@|#?\(|…|\.{3}|/[a-z][\w-]*\s)?`)
	// quotedWord is a name in quotation marks that begins a sentence.
	quotedWord = lazyregexp.New(`^["“„«「]\s?[^\s"”“»」:,]+(?: [^\s"”“»」:,]+)?\s?["”“»」]\s?`)
	// counted is a line that begins with a number which counts something.
	counted = lazyregexp.New(`^\d{1,4}(?: ?%)? \p{Ll}`)
	// mailGreeting begins a mail to a person: "Dear team,", "Hi Tom,".
	mailGreeting = lazyregexp.New(`(?i)^(?:dear|sehr geehrte[rs]?|liebe[rs]?|cher|chère|bonjour|estimad[oa]s?|hola|querid[oa]s?|prezad[oa]s?|caro|cara|gentile|beste|geachte|` +
		`hi|hello|hey|hallo|уважаем\p{L}+|sayın|szanown\p{L}+|尊敬的)\s?(\p{L}[\p{L} .'-]*)[,:，：!]$`)
	agentName = lazyregexp.New(`(?i)^(?:there|claude|chatgpt|gpt|copilot|gemini|cursor|codex|assistant|agent|ai|bot)$`)
)

// signOffs end a mail.
var signOffs = lines(`best|regards|best regards|kind regards|warm regards|warmest regards|kindest regards|best wishes|kind wishes|cheers|sincerely|yours truly|yours sincerely|yours faithfully|many thanks|thanks and regards|all the best|respectfully
mit freundlichen grüßen|mit freundlichem gruß|mit besten grüßen|mit lieben grüßen|freundliche grüße|viele grüße|liebe grüße|beste grüße|schöne grüße|lg|mfg|cordialement|bien cordialement|bien à vous|salutations distinguées|saludos|saludos cordiales|atentamente|un saludo|un cordial saludo|atenciosamente|abraços|cumprimentos
cordiali saluti|distinti saluti|saluti|met vriendelijke groet|met vriendelijke groeten|groeten|pozdrawiam|z poważaniem|с уважением|з повагою|saygılarımla|med vänlig hälsning|vänliga hälsningar|med venlig hilsen|med vennlig hilsen|s pozdravem|üdvözlettel|cu stimă|ystävällisin terveisin|με εκτίμηση
此致|此致敬礼|敬上|よろしくお願いします|よろしくお願いいたします|敬具|감사합니다|مع التحية|בברכה|भवदीय|trân trọng|hormat saya|--`)

// maxSignOff is the length of the longest, in bytes.
const maxSignOff = 60

func lines(s string) map[string]bool {
	out := map[string]bool{}
	for _, l := range strings.FieldsFunc(s, func(r rune) bool { return r == '|' || r == '\n' }) {
		out[l] = true
	}
	return out
}

func isSignOff(s string) bool {
	if len(s) > maxSignOff {
		return false
	}
	s = strings.ToLower(strings.TrimRight(s, ",!.， "))
	return signOffs[s] || strings.HasPrefix(s, "sent from my ")
}

func isFence(s string) bool { return strings.HasPrefix(s, "```") || strings.HasPrefix(s, "~~~") }

// structure returns the line after a structure that begins at l, -1 if it has no end, and the line itself if
// none begins.
func (c *splitter) structure(l *line) int {
	switch {
	case l.text == "":
		return c.at
	case len(l.text) > maxOwn:
		return -1
	case isFence(l.text):
		return c.behind(c.fences[1])
	case strings.HasPrefix(l.text, ">>>"):
		return -1
	case l.text[0] == '>':
		return c.block()
	case l.text[0] == '<':
		return c.element(l)
	case strings.HasPrefix(l.text, "#"):
		return c.open(!ownHeading(l.text))
	case l.indent > 1 && !(c.list && listItem().MatchString(l.text)):
		return c.block()
	}
	return c.open(!beginsProse(l.text))
}

// open is the result of [structure] for a line that may open a structure without an end.
func (c *splitter) open(opens bool) int {
	if opens {
		return -1
	}
	return c.at
}

// behind returns the line after the last line of a structure.
func (c *splitter) behind(last int) int {
	if last <= c.at {
		return -1
	}
	return last + 1
}

// block returns the line after the lines that follow without a gap: a quote continues without its mark.
func (c *splitter) block() int {
	i := c.at
	for i < len(c.all) && c.all[i].text != "" {
		i++
	}
	return i
}

// ownElements contain the user's words, as programs separate these from attached text.
var ownElements = map[string]bool{"user_query": true, "userrequest": true, "user_message": true, "user_request": true, "task": true, "feedback": true, "prompt": true, "answer": true}

// element returns the line after an element. The user's own element is read like a message.
func (c *splitter) element(l *line) int {
	m := openingTag().FindStringSubmatch(l.text)
	if m == nil {
		return -1
	}
	name := strings.ToLower(m[1])
	last, ok := c.closers[name]
	switch {
	case !ok || last < c.at:
		return -1
	case ownElements[name] && !c.within:
		c.inner(l, last, name)
	case last == c.at && !strings.HasSuffix(l.text, ">"):
		return -1
	}
	return last + 1
}

// inner reads an element of the user from the line with its tag to the line with its end.
func (c *splitter) inner(l *line, last int, name string) {
	from := l.from + strings.IndexByte(c.s[l.from:l.to], '<')
	end := c.all[last]
	from += strings.IndexByte(c.s[from:], '>') + 1
	to := end.from + strings.LastIndex(strings.ToLower(c.s[end.from:end.to]), "</"+name)
	if from > to || to > len(c.s) {
		return
	}
	in := newSplitter(c.s[from:to])
	in.within = true
	in.lines()
	for _, x := range in.own {
		c.take(from+x.from, from+x.to)
	}
}

// beginsProse reports a line that begins like a sentence, or like an item of a list.
func beginsProse(s string) bool {
	if p := placeholder().FindString(s); p != "" {
		return len(p) == len(s) || beginsProse(s[len(p):])
	}
	s = s[len(listItem().FindString(s)):]
	if strings.HasPrefix(s, "– ") && hasVoice(s) { // an item, and no name of an author
		s = s[len("– "):]
	}
	s = s[len(emphasis().FindString(s)):]
	if s != "" && s[0] == '`' {
		return strings.Contains(s[1:], "` ")
	}
	s = s[len(quotedWord().FindString(s)):]
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) || counted().MatchString(s)
}

// isNote reports a line below the text of another: a note in brackets, or the last line, if it
// has a label of a source or marks the end.
func (c *splitter) isNote(s string) bool {
	if strings.HasPrefix(s, "(") || strings.HasPrefix(s, "[") {
		return len(c.s)-c.all[c.at].from < 200
	}
	if c.ahead() != nil {
		return false
	}
	m := labelled().FindStringSubmatch(unlisted(s))
	return isEnd(s) || m != nil && slices.ContainsFunc(labelWords(m[1]), isForeigner)
}

// trailing reports a line that opens something, but is a note below the text of another: an attribution, a
// closing tag, a mark of the end.
func (c *splitter) trailing() bool {
	rest := len(c.s) - c.all[c.at].from
	switch s := c.all[c.at].text; {
	case strings.HasPrefix(s, "</"), strings.HasPrefix(s, "-->"), strings.HasPrefix(s, "*/"):
		return true
	case strings.HasPrefix(s, "["), strings.HasPrefix(s, "("):
		return rest < 200
	default:
		return rest < 200 && c.ahead() == nil && attribution().MatchString(s)
	}
}
