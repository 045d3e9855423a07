package extract

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/toolcall"
	"compactd/internal/summarize"
	"compactd/internal/summarize/snippet"
)

// Line is one item of a section, with the turns it comes from.
type Line struct {
	Text  string
	Turns [2]int64
	fixed bool // of a failure: the same call succeeded later
}

// file is a path with its uses.
type file struct {
	path          string
	changed, read [2]int64 // turns; zero for never
	last          int      // orders files by last use
}

// Digest is the result of one pass over the messages.
type Digest struct {
	Previous *events.Summary // or that of a message
	Focus    []string

	Users                         []Line     // whole, up to GoalUnits
	userFacts                     []Line     // those of the record: attached text is a line of its own
	userPhrases                   []Phrase   // sentences of users
	question                      string     // the end of the assistant's last text, which a bare "yes" approves
	approved                      []approval // of users
	matter                        *ruleMatter
	instructions                  []Line // of the system, word for word
	rules, decisions, discoveries []Line
	work                          []Line // the assistant's last work
	files                         []*file
	failures                      []failure
	succeeded                     map[string]bool // heads of calls
	tasks                         set             // open ones
	taskList                      bool            // the range has a to-do list of a tool
	ticked                        map[string]bool // tasks that are done
	idents                        set

	carried bool // previous comes from a message of the range
	byPath  map[string]*file
	called  []Line // heads of the last calls, for ranges without any text
	uses    int
}

// Bounds of one line, in UTF-16 units.
const (
	GoalUnits    = 500
	requestUnits = 160 // of a request in the course of the task
	userUnits    = 400 // of a user message in the record
	commandUnits = 120
	failureUnits = 160
	taskUnits    = 200
	pathUnits    = 1_024 // longer paths are not names of files
	lineUnits    = 1_100 // of a line of the previous summary, except rules
	suffixUnits  = 60    // of the turns of a line
)

const (
	maxWork     = 3
	maxPhrases  = 4_000
	phraseBytes = 1_600 // bounds the part of a sentence that is read
)

// Scan reads the messages of a range once.
func Scan(in *summarize.Input) *Digest { return ScanUntil(context.Background(), in) }

// ScanUntil is Scan. Before each message it checks whether ctx has ended, and may let others compute first.
// After the end of ctx the digest is useless.
func ScanUntil(ctx context.Context, in *summarize.Input) *Digest {
	d := &Digest{
		Previous: in.Previous, Focus: focusWords(in.Focus),
		succeeded: map[string]bool{}, ticked: map[string]bool{}, byPath: map[string]*file{},
	}
	s := scanner{Digest: d, byID: map[string]int{}, open: map[string][]int{}}
	var written []summarize.Message
	for i := range in.Messages {
		if ctx.Err() != nil {
			break
		}
		m := &in.Messages[i]
		switch m.Role {
		case dialect.RoleSystem:
			d.system(m)
		case dialect.RoleUser:
			d.user(m)
		case dialect.RoleAssistant:
			if d.assistant(m) {
				written = append(written, *m)
			}
		}
		s.tools(m)
		if i+1 < len(in.Messages) {
			s.block(m, &in.Messages[i+1])
		}
	}
	s.finish()
	for _, m := range written[max(0, len(written)-maxWork):] {
		d.work = append(d.work, workLine(&m))
	}
	d.work = slices.DeleteFunc(d.work, func(l Line) bool { return l.Text == "" })
	if len(d.work) == 0 && len(d.Users) == 0 {
		d.work = d.called
	}
	d.carryApprovals()
	d.labelClaims()
	return d
}

// Empty reports a range that has nothing to summarize.
func (d *Digest) Empty() bool {
	return len(d.Users) == 0 && len(d.work) == 0 && len(d.files) == 0 && len(d.failures) == 0 &&
		!d.taskList && !d.carried
}

// system takes the words of a system message unchanged: the agent's maker wants them kept. Of a summary in
// such a message the content counts.
func (d *Digest) system(m *summarize.Message) {
	var texts []string
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != dialect.PartText || isPlaceholder(p.Text) || strings.TrimSpace(p.Text) == "" {
			continue
		}
		if _, summary := UserText(p.Text); summary != "" {
			d.user(m)
			return
		}
		texts = append(texts, strings.TrimSpace(p.Text))
	}
	if len(texts) > 0 {
		text := strings.Join(texts, "\n")
		d.instructions = append(d.instructions, Line{Text: text, Turns: [2]int64{m.Turn, m.Turn}})
		d.identify(text, m.Turn)
	}
}

// user reads the user's words in a message.
func (d *Digest) user(m *summarize.Message) {
	var texts []string
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case dialect.PartText:
			text, summary := UserText(p.Text)
			if summary != "" && (d.Previous == nil || d.carried) {
				d.Previous, d.carried = parseMessage(summary, m.Turn), true
			}
			if text != "" {
				texts = append(texts, text)
			}
			if m.Role == dialect.RoleUser {
				d.approve(m, text)
			}
		case dialect.PartImage:
			texts = append(texts, PlaceOf(p))
		}
	}
	text := snippet.WithoutData(strings.Join(texts, "\n"))
	own, all := ownText(m, text)
	l := Line{Text: text, Turns: [2]int64{m.Turn, m.Turn}}
	switch {
	case own == "":
		l.Text = attachedLabel + text
	case !all:
		l.Text = own + attachedNote
	}
	if l.Text = snippet.Clip(l.Text, GoalUnits); text == "" || l.Text == "" {
		return
	}
	d.Users = append(d.Users, l)
	if d.userFacts = append(d.userFacts, l); own != "" && !all {
		d.userFacts = append(d.userFacts, Line{Text: attachedLabel + snippet.Clip(text, GoalUnits), Turns: l.Turns})
	}
	d.identify(text, m.Turn)
	d.boxes(own, m.Turn)
	for s := range snippet.Sentences(own) {
		d.note(s)
		if isRule(s) {
			d.rules = append(d.rules, Line{Text: snippet.Clip(s, ruleUnits), Turns: l.Turns})
		}
	}
}

// note notes a sentence that a user wrote.
func (d *Digest) note(s string) {
	if len(d.userPhrases) < maxPhrases {
		s = snippet.Head(s, phraseBytes)
		p := PhraseOf(s)
		p.text, p.meaning = s, meaningOf(s)
		d.userPhrases = append(d.userPhrases, p)
	}
}

// isRule reports a sentence of a user that is a rule.
func isRule(s string) bool {
	if r, _ := utf8.DecodeLastRuneInString(s); strings.ContainsRune("?？؟", r) || len(s) < 10 {
		return false
	}
	return snippet.IsRule(snippet.Head(s, phraseBytes))
}

const (
	// attachedLabel begins a message with the text of others in the record. It holds to the end of the line,
	// so nothing in that text can end it.
	attachedLabel = "attached text: "
	// attachedNote follows the user's own words of such a message, if it has any.
	attachedNote = " (and attached text)"
)

// PlaceOf names the content of an image or document part.
func PlaceOf(p *dialect.Part) string {
	for name, v := range codec.Members(p.Raw) {
		if s, _ := codec.Text(v); name == "type" && (s == "document" || s == "file") {
			return snippet.DocumentPlace
		}
	}
	return snippet.ImagePlace
}

// assistant reads the sentences of an assistant, and reports whether it
// wrote anything.
func (d *Digest) assistant(m *summarize.Message) bool {
	wrote := false
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == dialect.PartText {
			d.question = p.Text[max(0, len(p.Text)-maxQuestion):]
		}
		if p.Kind != dialect.PartText || isPlaceholder(p.Text) || strings.TrimSpace(p.Text) == "" {
			continue
		}
		wrote = true
		text := snippet.WithoutData(p.Text)
		d.identify(text, m.Turn)
		d.boxes(text, m.Turn)
		for s := range snippet.Sentences(text) {
			if len(s) < 20 || strings.HasSuffix(s, ":") || strings.HasSuffix(s, "?") {
				continue
			}
			lower := snippet.Lowered(snippet.Head(s, 4*snippet.SentenceUnits))
			l := Line{Turns: [2]int64{m.Turn, m.Turn}}
			switch {
			case snippet.Matches(lower, snippet.DecisionWords):
				l.Text = snippet.ClipNeutral(s, snippet.SentenceUnits)
				d.decisions = append(d.decisions, l)
			case snippet.Matches(lower, snippet.DiscoveryWords), anyOf(lower, strings.Contains, d.Focus...):
				l.Text = snippet.ClipNeutral(s, snippet.SentenceUnits)
				d.discoveries = append(d.discoveries, l)
			}
		}
	}
	return wrote
}

// workLine is the first sentence of a message.
func workLine(m *summarize.Message) Line {
	l := Line{Turns: [2]int64{m.Turn, m.Turn}}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == dialect.PartText && !isPlaceholder(p.Text) {
			if l.Text = snippet.ClipNeutral(snippet.FirstSentence(snippet.WithoutData(p.Text)), snippet.SentenceUnits); l.Text != "" {
				break
			}
		}
	}
	return l
}

// identify notes the identifiers of a text.
func (d *Digest) identify(text string, turn int64) {
	snippet.Identifiers(text, func(s string) { d.ident(s, turn) })
}

func (d *Digest) ident(s string, turn int64) {
	d.idents.add(Line{Text: s, Turns: [2]int64{turn, turn}})
}

// emptyBox begins a task that was an empty box in a text.
const emptyBox = "[ ] "

// boxes notes the tasks of a list with boxes, and removes the ticked ones.
func (d *Digest) boxes(text string, turn int64) {
	if !strings.Contains(text, "] ") {
		return
	}
	for l := range strings.Lines(text) {
		l = strings.TrimLeft(l, " \t")
		if len(l) < 7 || l[0] != '-' && l[0] != '*' || l[1:3] != " [" || l[4:6] != "] " {
			continue
		}
		t := snippet.ClipNeutral(l[6:], taskUnits)
		switch {
		case t == "":
		case l[3] == ' ':
			d.tasks.add(Line{Text: emptyBox + t, Turns: [2]int64{turn, turn}})
			delete(d.ticked, emptyBox+t)
		case l[3] == 'x' || l[3] == 'X':
			d.ticked[emptyBox+t] = true
			d.tasks.remove(emptyBox + t)
		}
	}
}

// list replaces the tasks of the last to-do list by those of a newer one.
func (d *Digest) list(tasks []task, turn int64) {
	d.taskList = true
	for _, l := range d.tasks.lines {
		if !strings.HasPrefix(l.Text, emptyBox) {
			d.tasks.remove(l.Text)
		}
	}
	for _, t := range tasks {
		if t.done {
			d.ticked[t.text] = true
			continue
		}
		delete(d.ticked, t.text)
		d.tasks.add(Line{Text: t.text, Turns: [2]int64{turn, turn}})
	}
}

// use notes a use of a file.
func (d *Digest) use(u toolcall.Use, turn int64) {
	f := d.byPath[u.Path]
	if f == nil {
		f = &file{path: u.Path}
		d.byPath[u.Path] = f
		d.files = append(d.files, f)
	}
	span := &f.read
	if u.Changed {
		span = &f.changed
	}
	*span = JoinTurns(*span, [2]int64{turn, turn})
	d.uses++
	f.last = d.uses
}

// JoinTurns returns the turns from the earlier beginning to the later end.
func JoinTurns(a, b [2]int64) [2]int64 {
	if a == [2]int64{} {
		return b
	}
	if b == [2]int64{} {
		return a
	}
	return [2]int64{min(a[0], b[0]), max(a[1], b[1])}
}

// set is a list of lines in the order of their first addition, each text once.
type set struct {
	lines []Line // a removed one has no text
	at    map[string]int
}

// add adds a line, or joins its turns with those of the line of the same text.
func (s *set) add(l Line) {
	if i, ok := s.at[l.Text]; ok {
		s.lines[i].Turns = JoinTurns(s.lines[i].Turns, l.Turns)
		s.lines[i].fixed = l.fixed
		return
	}
	if s.at == nil {
		s.at = map[string]int{}
	}
	s.at[l.Text] = len(s.lines)
	s.lines = append(s.lines, l)
}

func (s *set) remove(text string) {
	if i, ok := s.at[text]; ok {
		s.lines[i] = Line{}
		delete(s.at, text)
	}
}

// again moves an existing line to the end, or adds it.
func (s *set) again(l Line) {
	if i, ok := s.at[l.Text]; ok {
		l.Turns = JoinTurns(s.lines[i].Turns, l.Turns)
		s.remove(l.Text)
	}
	s.add(l)
}

// all returns the remaining lines.
func (s *set) all() []Line {
	return slices.DeleteFunc(slices.Clone(s.lines), func(l Line) bool { return l.Text == "" })
}

// idle words of a focus do not describe its subject.
var idle = []string{"about", "focus", "from", "have", "keep", "mind", "please", "remember", "that", "this", "what", "with"}

// focusWords returns the words of a focus that select lines.
func focusWords(focus string) []string {
	words := strings.FieldsFunc(snippet.Lowered(snippet.Clip(focus, lineUnits)), func(r rune) bool { return r < '0' || r > '9' && r < 'a' || r > 'z' && r < 0x80 })
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 4 || slices.Contains(idle, w) })
	return words[:min(len(words), 16)]
}
