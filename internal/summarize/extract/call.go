package extract

import (
	"cmp"
	"slices"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/toolcall"
	"compactd/internal/summarize/snippet"
)

// Names are compared in the form of [toolcall.PlainName].
var (
	listArguments = []string{"items", "plan", "tasks", "todos"}
	listTools     = []string{"plan", "task", "todo"} // parts of names
	// passingIDs are ids of an agent's own machinery.
	passingIDs = []string{"agentid", "bashid", "callid", "messageid", "shellid", "taskid", "toolcallid", "toolid"}
)

// anyOf reports that a relation holds between a text and one of others, such as [strings.Contains].
func anyOf(s string, holds func(s, part string) bool, all ...string) bool {
	return slices.ContainsFunc(all, func(part string) bool { return holds(s, part) })
}

// call has the facts of a tool call before its result.
type call struct {
	turn   int64
	done   bool   // it has its result
	key    string // equal for calls of the same tool with the same command or path
	head   string // for people: `go test ./...`, or Edit `main.go`
	named  bool   // head is as specific as key, unless it is cut
	shell  bool
	quotes bool // a command that shows text of others: its output is no sign of success
	commit bool // a command that makes commits
	uses   []toolcall.Use
	list   []task // of a to-do list, nil when the call has none
	idents []string
}

// task is one item of a to-do list.
type task struct {
	text string
	done bool
}

// readCall reads the call that a part holds.
func readCall(p *dialect.Part, turn int64) call {
	c := call{turn: turn}
	tool := toolcall.PlainName(p.Tool)
	c.shell = toolcall.KindOf(p.Tool, p.Args) == toolcall.Shell
	for name, value := range codec.Members(p.Args) {
		name := toolcall.PlainName(name)
		switch {
		case slices.Contains(listArguments, name) && anyOf(tool, strings.Contains, listTools...):
			c.list = readTasks(value)
		case strings.HasSuffix(name, "id") && !slices.Contains(passingIDs, name):
			if s, ok := codec.Text(value); ok && snippet.IsValueID(s) {
				c.idents = append(c.idents, s)
			}
		}
	}
	for u := range toolcall.Uses(p.Tool, p.Args) {
		if u.Path = snippet.Plain(u.Path); u.Path != "" && codec.Units(u.Path) <= pathUnits {
			c.uses = append(c.uses, u)
		}
	}
	command := ""
	if c.shell {
		command = toolcall.Command(p.Args)
	}
	name := snippet.Clip(p.Tool, snippet.IdentUnits)
	switch {
	case command != "":
		c.key = tool + "\x00" + command
		c.head, c.named = "`"+snippet.Clip(command, commandUnits)+"`", true
		c.command(command)
	case len(c.uses) > 0:
		path := c.uses[0].Path
		c.key = tool + "\x00" + path
		c.head, c.named = name+" `"+snippet.Clip(path, commandUnits)+"`", true
	default:
		c.key, c.head = tool+"\x00"+string(p.Args), name
	}
	return c
}

// quoting are the programs whose output is other texts.
var quoting = []string{"ag", "awk", "cat", "diff", "find", "grep", "head", "jq", "less", "ls", "rg", "sed", "tail"}

// command reads the kind of a shell command's output.
func (c *call) command(s string) {
	c.commit = strings.Contains(s, "git commit") || strings.Contains(s, "git push") || strings.Contains(s, "git merge")
	words := strings.Fields(snippet.Head(s, 4*commandUnits))
	for len(words) > 0 && words[0] == "cd" { // cd DIR && …
		i := slices.Index(words, "&&")
		if i < 0 {
			break
		}
		words = words[i+1:]
	}
	if len(words) == 0 {
		return
	}
	c.quotes = slices.Contains(quoting, words[0])
	if words[0] == "git" && len(words) > 1 {
		c.quotes = slices.Contains([]string{"blame", "diff", "grep", "log", "show"}, words[1])
	}
}

// readTasks reads the items of a to-do list, in the names that agents give them.
func readTasks(value codec.Raw) []task {
	if s, ok := codec.Text(value); ok {
		value = codec.Raw(s) // some models quote the array
	}
	var items []codec.Raw
	if value.Kind() != '[' || codec.Unmarshal(value, &items) != nil {
		return nil
	}
	out := []task{}
	for _, item := range items {
		var t task
		if s, ok := codec.Text(item); ok {
			t.text = s
		}
		for name, v := range codec.Members(item) {
			s, _ := codec.Text(v)
			switch toolcall.PlainName(name) {
			case "content", "description", "step", "subject", "task", "text", "title":
				t.text = cmp.Or(t.text, s)
			case "status", "state":
				s = toolcall.PlainName(s)
				t.done = slices.Contains([]string{"canceled", "cancelled", "closed", "complete", "completed", "done"}, s)
			case "checked", "completed", "done":
				t.done = v.Kind() == 't'
			}
		}
		if t.text = snippet.ClipNeutral(t.text, taskUnits); t.text != "" {
			out = append(out, t)
		}
	}
	return out
}
