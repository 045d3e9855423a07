package summarize

import (
	"slices"
	"strings"

	"compactd/internal/events"
)

// line is one item of a section, with the turns it comes from.
type line struct {
	text  string
	turns [2]int64
	fixed bool // of a failure: a later run of the same call succeeded
}

// file is a path with what was done to it.
type file struct {
	path          string
	changed, read [2]int64 // turns; zero for never
	last          int      // orders files by last use
}

// digest is what one pass over the messages finds.
type digest struct {
	previous *events.Summary // or what a message carries of one
	focus    []string

	users                         []line   // whole, up to goalUnits
	said                          []saying // sentences of users
	approved                      []saying // what users approved
	rules, decisions, discoveries []line
	work                          []line // what the assistant did last
	files                         []*file
	failures                      []failure
	succeeded                     map[string]bool // heads of calls
	tasks                         set             // open ones
	taskList                      bool            // the range has a to-do list of a tool
	ticked                        map[string]bool // tasks that are done
	idents                        set

	carried bool // previous comes from a message of the range
	byPath  map[string]*file
	called  []line // heads of the last calls, for ranges without any text
	uses    int
}

const (
	maxWork         = 3
	maxRulesMessage = 40 // of one user message, which may be a pasted document
	maxSaid         = 4_000
)

// scan reads the messages of a range once.
func scan(in *Input) *digest {
	d := &digest{
		approved: approvals(in), previous: in.Previous, focus: focusWords(in.Focus),
		succeeded: map[string]bool{}, ticked: map[string]bool{}, byPath: map[string]*file{},
	}
	s := scanner{digest: d, byID: map[string]int{}, open: map[string][]int{}}
	var spoken []Message
	for i := range in.Messages {
		m := &in.Messages[i]
		switch m.Role {
		case events.RoleUser:
			d.user(m)
		case events.RoleAssistant:
			if d.assistant(m) {
				spoken = append(spoken, *m)
			}
		}
		s.tools(m)
	}
	s.finish()
	for _, m := range spoken[max(0, len(spoken)-maxWork):] {
		d.work = append(d.work, workLine(&m))
	}
	d.work = slices.DeleteFunc(d.work, func(l line) bool { return l.text == "" })
	if len(d.work) == 0 && len(d.users) == 0 {
		d.work = d.called
	}
	d.approveAgain()
	d.markClaims()
	return d
}

// empty reports a range that has nothing to tell.
func (d *digest) empty() bool {
	return len(d.users) == 0 && len(d.work) == 0 && len(d.files) == 0 && len(d.failures) == 0 &&
		!d.taskList && !d.carried
}

// user reads what the user wrote in a message.
func (d *digest) user(m *Message) {
	var said []string
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case events.PartText:
			text, summary := userText(p.Text)
			if summary != "" && (d.previous == nil || d.carried) {
				d.previous, d.carried = parseMessage(summary, m.Turn), true
			}
			if text != "" {
				said = append(said, text)
			}
		case events.PartImage:
			said = append(said, placeOf(p))
		}
	}
	text := withoutData(strings.Join(said, "\n"))
	l := line{text: clip(text, goalUnits), turns: [2]int64{m.Turn, m.Turn}}
	if l.text == "" {
		return
	}
	d.users = append(d.users, l)
	d.identify(text, m.Turn)
	d.boxes(text, m.Turn)
	rules := 0
	for s := range sentences(text) {
		if len(d.said) < maxSaid {
			d.said = append(d.said, sayingOf(head(s, 4*ruleUnits)))
		}
		if rules == maxRulesMessage {
			continue
		}
		if strings.HasSuffix(s, "?") || len(s) < 10 || !matches(folded(head(s, 4*ruleUnits)), ruleWords) {
			continue
		}
		d.rules = append(d.rules, line{text: clip(s, ruleUnits), turns: l.turns})
		rules++
	}
}

// placeOf names what an image or document part holds.
func placeOf(p *events.Part) string {
	for name, v := range events.Members(p.Raw) {
		if s, _ := events.Text(v); name == "type" && (s == "document" || s == "file") {
			return documentPlace
		}
	}
	return imagePlace
}

// assistant reads the sentences of an assistant, and reports whether it said
// anything.
func (d *digest) assistant(m *Message) bool {
	spoke := false
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != events.PartText || isPlaceholder(p.Text) || strings.TrimSpace(p.Text) == "" {
			continue
		}
		spoke = true
		text := withoutData(p.Text)
		d.identify(text, m.Turn)
		d.boxes(text, m.Turn)
		for s := range sentences(text) {
			if len(s) < 20 || strings.HasSuffix(s, ":") || strings.HasSuffix(s, "?") {
				continue
			}
			lower := folded(head(s, 4*sentenceUnits))
			l := line{turns: [2]int64{m.Turn, m.Turn}}
			switch {
			case matches(lower, decisionWords):
				l.text = heard(s, sentenceUnits)
				d.decisions = append(d.decisions, l)
			case matches(lower, discoveryWords), d.focused(lower):
				l.text = heard(s, sentenceUnits)
				d.discoveries = append(d.discoveries, l)
			}
		}
	}
	return spoke
}

// workLine is the first sentence of a message.
func workLine(m *Message) line {
	l := line{turns: [2]int64{m.Turn, m.Turn}}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == events.PartText && !isPlaceholder(p.Text) {
			if l.text = heard(firstSentence(withoutData(p.Text)), sentenceUnits); l.text != "" {
				break
			}
		}
	}
	return l
}

// identify takes the identifiers of a text.
func (d *digest) identify(text string, turn int64) {
	identifiers(text, func(s string) { d.ident(s, turn) })
}

func (d *digest) ident(s string, turn int64) {
	d.idents.add(line{text: s, turns: [2]int64{turn, turn}})
}

// boxMark begins a task that stood as an empty box in a text.
const boxMark = "[ ] "

// boxes takes the tasks that a text lists with boxes, and crosses off the ticked.
func (d *digest) boxes(text string, turn int64) {
	if !strings.Contains(text, "] ") {
		return
	}
	for l := range strings.Lines(text) {
		l = strings.TrimLeft(l, " \t")
		if len(l) < 7 || l[0] != '-' && l[0] != '*' || l[1:3] != " [" || l[4:6] != "] " {
			continue
		}
		t := heard(l[6:], taskUnits)
		switch {
		case t == "":
		case l[3] == ' ':
			d.tasks.add(line{text: boxMark + t, turns: [2]int64{turn, turn}})
			delete(d.ticked, boxMark+t)
		case l[3] == 'x' || l[3] == 'X':
			d.ticked[boxMark+t] = true
			d.tasks.remove(boxMark + t)
		}
	}
}

// list replaces the tasks of the last to-do list by those of a newer one.
func (d *digest) list(tasks []task, turn int64) {
	d.taskList = true
	for _, l := range d.tasks.lines {
		if !strings.HasPrefix(l.text, boxMark) {
			d.tasks.remove(l.text)
		}
	}
	for _, t := range tasks {
		if t.done {
			d.ticked[t.text] = true
			continue
		}
		delete(d.ticked, t.text)
		d.tasks.add(line{text: t.text, turns: [2]int64{turn, turn}})
	}
}

// use notes a use of a file.
func (d *digest) use(u use, turn int64) {
	f := d.byPath[u.path]
	if f == nil {
		f = &file{path: u.path}
		d.byPath[u.path] = f
		d.files = append(d.files, f)
	}
	span := &f.read
	if u.changed {
		span = &f.changed
	}
	*span = joined(*span, [2]int64{turn, turn})
	d.uses++
	f.last = d.uses
}

// joined returns the turns from the earlier beginning to the later end.
func joined(a, b [2]int64) [2]int64 {
	if a == [2]int64{} {
		return b
	}
	if b == [2]int64{} {
		return a
	}
	return [2]int64{min(a[0], b[0]), max(a[1], b[1])}
}

// set is a list of lines in the order they were first added, each text once.
type set struct {
	lines []line // a removed one has no text
	at    map[string]int
}

// add adds a line, or joins its turns with those of the line of the same text.
func (s *set) add(l line) {
	if i, ok := s.at[l.text]; ok {
		s.lines[i].turns = joined(s.lines[i].turns, l.turns)
		s.lines[i].fixed = l.fixed
		return
	}
	if s.at == nil {
		s.at = map[string]int{}
	}
	s.at[l.text] = len(s.lines)
	s.lines = append(s.lines, l)
}

func (s *set) remove(text string) {
	if i, ok := s.at[text]; ok {
		s.lines[i] = line{}
		delete(s.at, text)
	}
}

// again moves a line that is there to the end, or adds it.
func (s *set) again(l line) {
	if i, ok := s.at[l.text]; ok {
		l.turns = joined(s.lines[i].turns, l.turns)
		s.remove(l.text)
	}
	s.add(l)
}

// all returns the lines that are left.
func (s *set) all() []line {
	return slices.DeleteFunc(slices.Clone(s.lines), func(l line) bool { return l.text == "" })
}

// idle words of a focus say nothing about what it is on.
var idle = []string{"about", "focus", "from", "have", "keep", "mind", "please", "remember", "that", "this", "what", "with"}

// focusWords returns the words of a focus that lines are looked through for.
func focusWords(focus string) []string {
	words := strings.FieldsFunc(folded(clip(focus, lineUnits)), func(r rune) bool { return r < '0' || r > '9' && r < 'a' || r > 'z' && r < 0x80 })
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 4 || slices.Contains(idle, w) })
	return words[:min(len(words), 16)]
}

func (d *digest) focused(lower string) bool { return containsAny(lower, d.focus) }
