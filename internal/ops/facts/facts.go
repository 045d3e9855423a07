package facts

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// Facts are what an agent must keep of some messages: files that were
// changed, what the user wrote, what failed, the tasks that are open, and what the system
// instructs within the conversation.
type Facts struct {
	Paths, Users, Failures, Todos, Instructions []Probe

	turns  map[string][]int64           // by the texts of a probe
	had    map[*[]Probe]map[string]bool // the texts of each list
	called map[string]int64             // turns of calls, by their ids
	now    int64                        // the turn that is read
}

// Turns are those that hold a fact: of a result that of its call too.
func (f *Facts) Turns(p Probe) []int64 { return f.turns[p.key()] }

// Probe is a fact, and what has to be found of it: all texts, in one part of the
// history.
type Probe []string

// Turn is the messages of one turn of a session.
type Turn struct {
	Number   int64
	Messages []dialect.Message
}

// Lengths of what has to be found word by word, in characters.
const (
	userHead    = 75
	failureHead = 60
	commandHead = 40
)

// Of reads the turns of a session, in their order, up to a position, included.
func Of(turns []Turn, to events.Position) *Facts {
	f := &Facts{turns: map[string][]int64{}, had: map[*[]Probe]map[string]bool{}, called: map[string]int64{}}
	calls := map[string]*dialect.Part{}
	for _, t := range turns {
		f.now = t.Number
		for k, m := range t.Messages {
			if (events.Position{Turn: t.Number, Index: int64(k)}).Compare(to) > 0 {
				return f
			}
			for i := range m.Parts {
				f.part(m.Role, &m.Parts[i], calls)
			}
		}
	}
	return f
}

func (f *Facts) part(role dialect.Role, p *dialect.Part, calls map[string]*dialect.Part) {
	switch {
	case p.Kind == dialect.PartText && role == dialect.RoleSystem:
		f.add(&f.Instructions, Probe{oneLine(p.Text)})
	case p.Kind == dialect.PartText && role == dialect.RoleUser:
		if text := oneLine(p.Text); wroteIt(text) {
			f.add(&f.Users, Probe{opening(text, userHead)})
		}
	case p.Kind == dialect.PartCall:
		calls[p.CallID], f.called[p.CallID] = p, f.now
		if items, ok := f.todoList(p); ok {
			f.Todos = items
		}
	case p.Kind == dialect.PartResult:
		call := calls[p.CallID]
		if p.Failed || p.StatesError() {
			f.add(&f.Failures, failureOf(p, call), f.called[p.CallID])
		} else if path := written(call); path != "" {
			f.add(&f.Paths, Probe{path}, f.called[p.CallID])
		}
	}
}

// add notes a fact of the turn that is read, and of others.
func (f *Facts) add(list *[]Probe, p Probe, turns ...int64) {
	if p[0] == "" {
		return
	}
	key := p.key()
	if f.had[list] == nil {
		f.had[list] = map[string]bool{}
	}
	if !f.had[list][key] {
		f.had[list][key] = true
		*list = append(*list, p)
	}
	f.turns[key] = append(append(f.turns[key], turns...), f.now)
}

func (p Probe) key() string { return strings.Join(p, "\x00") }

// machinery begins user messages that no user wrote.
var machinery = regexp.MustCompile(`^(<[a-z][a-z_-]*>|\[Request interrupted|Base directory for this skill:|Caveat: )`)

func wroteIt(text string) bool { return text != "" && !machinery.MatchString(text) }

// written is the absolute path that a call changed, "" without one.
func written(call *dialect.Part) string {
	if call == nil {
		return ""
	}
	switch strings.ToLower(call.Tool) {
	case "edit", "write", "multiedit", "notebookedit":
	default:
		return ""
	}
	for name, v := range codec.Members(call.Args) {
		if path, ok := codec.Text(v); ok && strings.HasSuffix(name, "path") && strings.HasPrefix(path, "/") {
			return path
		}
	}
	return ""
}

// exitOnly are first lines that many failures share.
var exitOnly = regexp.MustCompile(`^(Exit code|Command exited with code|exit status) \d+$`)

// failureOf is the first line of a failed result. Where that is a bare exit code,
// what was called belongs to it.
func failureOf(p, call *dialect.Part) Probe {
	first, _, _ := strings.Cut(strings.TrimSpace(p.Text), "\n")
	first = oneLine(first)
	if call == nil || !exitOnly.MatchString(first) {
		return Probe{opening(first, failureHead)}
	}
	if command := commandOf(call); command != "" {
		return Probe{first, opening(command, commandHead)}
	}
	return Probe{first}
}

// commandOf is the command of a shell call, "" for any other.
func commandOf(call *dialect.Part) string {
	return oneLine(codec.String(codec.Get(call.Args, "command")))
}

// todoList reads the open items of a call that writes a to-do list.
func (f *Facts) todoList(call *dialect.Part) (open []Probe, ok bool) {
	if call.Tool != "TodoWrite" {
		return nil, false
	}
	var in struct {
		Todos []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"todos"`
	}
	if codec.Unmarshal(call.Args, &in) != nil {
		return nil, false
	}
	defer delete(f.had, &open)
	for _, t := range in.Todos {
		if t.Status != "completed" {
			f.add(&open, Probe{oneLine(t.Content)})
		}
	}
	return open, true
}

// oneLine makes runs of white space one space, and drops invisible characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// opening is the first n characters.
func opening(s string, n int) string {
	r := []rune(s)
	return strings.TrimSpace(string(r[:min(n, len(r))]))
}

// Share is the number of facts that a history contains.
type Share struct {
	Kept int `json:"kept"`
	All  int `json:"all"`
}

// String is kept/all.
func (s Share) String() string { return strconv.Itoa(s.Kept) + "/" + strconv.Itoa(s.All) }

// Plus adds two shares.
func (s Share) Plus(o Share) Share { return Share{s.Kept + o.Kept, s.All + o.All} }

// Ratio is between 0 and 1; of no facts it is 1.
func (s Share) Ratio() float64 {
	if s.All == 0 {
		return 1
	}
	return float64(s.Kept) / float64(s.All)
}

// History is the text of a history: each part on one line.
type History []string

// Lines reads a history. A result has a line together with its command, too.
func Lines(history []dialect.Message) (lines History) {
	calls := map[string]*dialect.Part{}
	for _, m := range history {
		for i := range m.Parts {
			p := &m.Parts[i]
			lines = append(lines, oneLine(p.Text), oneLine(string(p.Args)))
			if p.Kind == dialect.PartCall {
				calls[p.CallID] = p
			} else if call := calls[p.CallID]; p.Kind == dialect.PartResult && call != nil {
				lines = append(lines, oneLine(p.Text)+" "+commandOf(call))
			}
		}
	}
	return lines
}

// Holds counts the facts that a history holds, and returns those it does not.
func (h History) Holds(list []Probe) (s Share, lost []Probe) {
	for _, f := range list {
		if slices.ContainsFunc(h, f.in) {
			s.Kept++
		} else {
			lost = append(lost, f)
		}
		s.All++
	}
	return s, lost
}

func (p Probe) in(line string) bool {
	return !slices.ContainsFunc(p, func(s string) bool { return !strings.Contains(line, s) })
}

// Kind is a sort of fact, and how it is called.
type Kind struct {
	Name string
	Of   func(*Facts) []Probe
}

// Kinds are all sorts of facts.
var Kinds = []Kind{
	{"paths", func(f *Facts) []Probe { return f.Paths }},
	{"user_messages", func(f *Facts) []Probe { return f.Users }},
	{"failures", func(f *Facts) []Probe { return f.Failures }},
	{"todos", func(f *Facts) []Probe { return f.Todos }},
	{"instructions", func(f *Facts) []Probe { return f.Instructions }},
}
