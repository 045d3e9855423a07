package attached

import (
	"slices"
	"strings"
)

// maxOwn bounds the own text of a message, in bytes: longer texts are pasted.
const maxOwn = 4_000

// Part is a part of a message, by one author.
type Part struct {
	Text string
	Own  bool // the user's words
}

// Split returns the parts of a message of a user.
func Split(s string) []Part {
	c := newSplitter(s)
	c.at = c.answered()
	c.lines()
	c.disown()
	return c.parts()
}

// Own returns the words of the user, and whether they are the whole text.
func Own(s string) (own string, all bool) {
	var b strings.Builder
	all = true
	for _, p := range Split(s) {
		if p.Own {
			b.WriteString(p.Text + "\n")
		} else {
			all = all && strings.TrimSpace(p.Text) == ""
		}
	}
	return strings.TrimSpace(b.String()), all
}

// line is a line of a message.
type line struct {
	from, to int    // in bytes, without the line end
	text     string // trimmed
	indent   int
}

// splitter reads the lines of a message from its head on.
type splitter struct {
	s    string
	all  []line
	at   int // the current line
	list bool
	// within reports that the text is an element of the user, which contains no other.
	within bool
	own    []span // what the user wrote
	total  int    // bytes of it

	closers map[string]int // the last line with the closing tag of a name
	fences  [2]int         // the first and the last line that is a fence, -1 for none
}

type span struct{ from, to int }

func newSplitter(s string) *splitter {
	c := &splitter{s: s, closers: map[string]int{}, fences: [2]int{-1, -1}}
	for from := 0; from < len(s); {
		to, next := len(s), len(s)
		if i := strings.IndexByte(s[from:], '\n'); i >= 0 {
			to, next = from+i, from+i+1
		}
		raw := strings.TrimRight(s[from:to], " \t\r")
		text := strings.TrimLeft(raw, " \t\u00a0")
		l := line{from: from, to: to, text: text, indent: len(raw) - len(text) + 3*strings.Count(raw[:len(raw)-len(text)], "\t")}
		if isFence(text) {
			if c.fences[0] < 0 {
				c.fences[0] = len(c.all)
			}
			c.fences[1] = len(c.all)
		}
		if strings.Contains(text, "</") {
			for _, m := range closingTag().FindAllStringSubmatch(text, -1) {
				c.closers[strings.ToLower(m[1])] = len(c.all)
			}
		}
		c.all = append(c.all, l)
		from = next
	}
	return c
}

// lines reads the lines up to one that opens a structure without an end.
func (c *splitter) lines() {
	if slices.ContainsFunc(c.all, func(l line) bool { return isSignOff(l.text) }) {
		return // a mail
	}
	head := slices.IndexFunc(c.all, func(l line) bool { return l.text != "" })
	quoted := false // the text begins with a quotation or a fence, so it may be a page's
	for c.at < len(c.all) {
		if c.total > maxOwn {
			c.own = nil
			return
		}
		l := &c.all[c.at]
		switch next := c.structure(l); {
		case l.text == "":
			c.at++
		case next == c.at:
			if quoted && len(c.own) == 0 && !isReply(l.text) || !c.prose(l) {
				return
			}
			c.at++
		case next < 0:
			if c.trailing() {
				c.own = nil
			}
			return
		default:
			quoted = quoted || c.at == head && l.text[0] != '<'
			c.at = next
		}
	}
}

// disown removes words of a program, and words that the user has a question about, from the user's.
func (c *splitter) disown() {
	if c.total > maxOwn {
		c.own = nil
	}
	for i, x := range c.own {
		text := strings.TrimSpace(c.s[x.from:x.to])
		if isProgram(text) || i > 0 && i == len(c.own)-1 && judged().MatchString(lowered(text)) {
			c.own = nil
			return
		}
	}
}

// parts puts the spans in order, with the text between them.
func (c *splitter) parts() []Part {
	var out []Part
	kept := 0
	add := func(text string, own bool) {
		switch n := len(out); {
		case text == "":
		case n > 0 && (out[n-1].Own == own || strings.TrimSpace(text) == ""):
			out[n-1].Text += text
		default:
			out = append(out, Part{text, own})
		}
	}
	for _, x := range c.own {
		add(c.s[kept:x.from], false)
		add(c.s[x.from:x.to], true)
		kept = x.to
	}
	add(c.s[kept:], false)
	return out
}

// ahead is the next line with text, nil at the end.
func (c *splitter) ahead() *line {
	for i := c.at + 1; i < len(c.all); i++ {
		if c.all[i].text != "" {
			return &c.all[i]
		}
	}
	return nil
}
