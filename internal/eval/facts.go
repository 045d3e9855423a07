package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"compactd/internal/events"
)

// facts are what an agent must not forget of some messages. They are found here
// without any code of package summarize.
type facts struct{ paths, users, failures, todos []probe }

// probe is a fact, and what has to be found of it: all parts, in one line of the
// history.
type probe []string

// Lengths of what has to be found word by word, in characters.
const (
	userHead    = 75
	failureHead = 60
	commandHead = 40
)

// factsOf reads the messages of a session up to a position, included.
func factsOf(r *recording, to events.Position) *facts {
	f := &facts{}
	calls := map[string]*events.Part{}
	for _, t := range r.turns {
		for k, m := range t.messages {
			if (events.Position{Turn: t.number, Index: int64(k)}).Compare(to) > 0 {
				return f
			}
			for i := range m.Parts {
				f.part(m.Role, &m.Parts[i], calls)
			}
		}
	}
	return f
}

func (f *facts) part(role events.Role, p *events.Part, calls map[string]*events.Part) {
	switch {
	case p.Kind == events.PartText && role == events.RoleUser:
		if text := oneLine(p.Text); wroteIt(text) {
			add(&f.users, probe{opening(text, userHead)})
		}
	case p.Kind == events.PartCall:
		calls[p.CallID] = p
		if items, ok := todoList(p); ok {
			f.todos = items
		}
	case p.Kind == events.PartResult:
		call := calls[p.CallID]
		if failed(p) {
			add(&f.failures, failureOf(p, call))
		} else if path := written(call); path != "" {
			add(&f.paths, probe{path})
		}
	}
}

func add(list *[]probe, p probe) {
	if p[0] != "" && !slices.ContainsFunc(*list, func(q probe) bool { return slices.Equal(p, q) }) {
		*list = append(*list, p)
	}
}

// machinery begins user messages that no user wrote.
var machinery = regexp.MustCompile(`^(<[a-z][a-z_-]*>|\[Request interrupted|Base directory for this skill:|Caveat: )`)

func wroteIt(text string) bool { return text != "" && !machinery.MatchString(text) }

// written is the absolute path that a call changed, "" if it is none.
func written(call *events.Part) string {
	if call == nil {
		return ""
	}
	switch strings.ToLower(call.Tool) {
	case "edit", "write", "multiedit", "notebookedit":
	default:
		return ""
	}
	for name, v := range events.Members(call.Args) {
		if path, ok := events.Text(v); ok && strings.HasSuffix(name, "path") && strings.HasPrefix(path, "/") {
			return path
		}
	}
	return ""
}

// failed reports a result that its dialect marks, or that says so itself where
// the dialect has no mark.
func failed(p *events.Part) bool {
	return p.Failed || strings.HasPrefix(p.Text, "Error: ") || strings.HasPrefix(p.Text, "Traceback (most recent call last)")
}

// exitOnly are first lines that many failures share.
var exitOnly = regexp.MustCompile(`^(Exit code|Command exited with code|exit status) \d+$`)

// failureOf is the first line of a failed result. Where that is a bare exit code,
// what was called belongs to it.
func failureOf(p, call *events.Part) probe {
	first, _, _ := strings.Cut(strings.TrimSpace(p.Text), "\n")
	first = oneLine(first)
	if call == nil || !exitOnly.MatchString(first) {
		return probe{opening(first, failureHead)}
	}
	for name, v := range events.Members(call.Args) {
		if command, ok := events.Text(v); ok && name == "command" {
			return probe{first, opening(oneLine(command), commandHead)}
		}
	}
	return probe{first}
}

// todoList reads the open items of a call that writes a to-do list.
func todoList(call *events.Part) (open []probe, ok bool) {
	if call.Tool != "TodoWrite" {
		return nil, false
	}
	var in struct {
		Todos []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"todos"`
	}
	if events.Unmarshal(call.Args, &in) != nil {
		return nil, false
	}
	for _, t := range in.Todos {
		if t.Status != "completed" {
			add(&open, probe{oneLine(t.Content)})
		}
	}
	return open, true
}

// oneLine makes runs of white space one space, and drops what nobody sees.
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

// share is how many of some facts a history holds.
type share struct{ kept, all int }

func (s share) String() string { return strconv.Itoa(s.kept) + "/" + strconv.Itoa(s.all) }

func (s share) plus(o share) share { return share{s.kept + o.kept, s.all + o.all} }

func (s share) ratio() float64 {
	if s.all == 0 {
		return 1
	}
	return float64(s.kept) / float64(s.all)
}

// present counts the facts that a history holds, and returns those it does not.
func present(history []events.Message, list []probe) (s share, lost []probe) {
	var lines []string
	for _, m := range history {
		for i := range m.Parts {
			p := &m.Parts[i]
			for l := range strings.Lines(p.Text) {
				lines = append(lines, oneLine(l))
			}
			lines = append(lines, oneLine(p.Text), oneLine(string(p.Args)))
		}
	}
	for _, f := range list {
		if slices.ContainsFunc(lines, f.in) {
			s.kept++
		} else {
			lost = append(lost, f)
		}
		s.all++
	}
	return s, lost
}

func (p probe) in(line string) bool {
	return !slices.ContainsFunc(p, func(s string) bool { return !strings.Contains(line, s) })
}

// kind is a sort of fact, and how it is called.
type kind struct {
	name string
	of   func(*facts) []probe
}

var factKinds = []kind{
	{"paths", func(f *facts) []probe { return f.paths }},
	{"user_messages", func(f *facts) []probe { return f.users }},
	{"failures", func(f *facts) []probe { return f.failures }},
	{"todos", func(f *facts) []probe { return f.todos }},
}
