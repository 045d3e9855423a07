package extract

import (
	"regexp"
	"slices"
	"strings"

	"compactd/internal/events"
	"compactd/internal/summarize/snippet"
)

// Names are compared in lower case, without "_" and "-".
var (
	readTools = []string{
		"cat", "fileread", "fsread", "getfilecontents", "notebookread", "openfile", "read", "readfile", "readmanyfiles",
		"readmultiplefiles", "readtextfile", "view", "viewfile",
	}
	shellTools = []string{
		"bash", "cmd", "exec", "execcommand", "executecommand", "localshell", "powershell", "runcommand", "runinterminal",
		"runshellcommand", "runterminalcmd", "runterminalcommand", "shell", "shellexec", "terminal",
	}
	// changeVerbs are parts of names of tools that change the file they name.
	changeVerbs = []string{
		"append", "create", "delete", "edit", "insert", "move", "patch", "remove", "rename", "replace", "save", "update", "write",
	}
	pathArguments = []string{
		"absolutepath", "destination", "file", "filename", "filepath", "newpath", "notebookpath", "oldpath", "path", "paths",
		"source", "targetfile",
	}
	commandArguments = []string{"cmd", "command", "commandline", "script"}
	patchArguments   = []string{"command", "diff", "input", "patch"}
	listArguments    = []string{"items", "plan", "tasks", "todos"}
	listTools        = []string{"plan", "task", "todo"} // parts of names
	// passingIDs name what an agent's own machinery goes by.
	passingIDs = []string{"agentid", "bashid", "callid", "messageid", "shellid", "taskid", "toolcallid", "toolid"}
)

var separators = strings.NewReplacer("_", "", "-", "")

func plainName(s string) string { return strings.ToLower(separators.Replace(s)) }

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}

// use is one use of a file.
type use struct {
	path    string
	changed bool
	certain bool // it happened even if the call failed at the end
}

// call is what is known of a tool call before its result.
type call struct {
	turn   int64
	done   bool   // it has its result
	key    string // equal for calls of the same tool with the same command or path
	head   string // for people: `go test ./...`, or Edit `main.go`
	named  bool   // head is as specific as key, if it is not cut
	shell  bool
	quotes bool // a command that shows text of others: its output is no sign of success
	commit bool // a command that makes commits
	uses   []use
	list   []task // of a to-do list, nil when the call has none
	idents []string
}

// task is one item of a to-do list.
type task struct {
	text string
	done bool
}

// readCall reads the call that a part holds.
func readCall(p *events.Part, turn int64) call {
	c := call{turn: turn}
	tool := plainName(p.Tool)
	c.shell = slices.Contains(shellTools, tool)
	reads := slices.Contains(readTools, tool)
	changes := !reads && !c.shell && containsAny(tool, changeVerbs)
	var command string
	var paths []string
	views := false
	for name, value := range events.Members(p.Args) {
		name := plainName(name)
		switch {
		case c.shell && slices.Contains(commandArguments, name):
			command = commandText(value)
		case (reads || changes) && slices.Contains(pathArguments, name):
			paths = append(paths, texts(value)...)
		case changes && slices.Contains(patchArguments, name):
			text, _ := events.Text(value)
			views = views || text == "view" // a tool of many commands
			c.patch(text)
		case slices.Contains(listArguments, name) && containsAny(tool, listTools):
			c.list = readTasks(value)
		case strings.HasSuffix(name, "id") && !slices.Contains(passingIDs, name):
			if s, ok := events.Text(value); ok && snippet.IsValueID(s) {
				c.idents = append(c.idents, s)
			}
		}
	}
	for _, path := range paths {
		c.use(path, changes && !views, false)
	}
	name := snippet.Clip(p.Tool, snippet.IdentUnits)
	switch {
	case command != "":
		c.key = tool + "\x00" + command
		c.head, c.named = "`"+snippet.Clip(command, commandUnits)+"`", true
		c.command(command)
	case len(paths) > 0:
		c.key = tool + "\x00" + paths[0]
		c.head, c.named = name+" `"+snippet.Clip(paths[0], commandUnits)+"`", true
	default:
		c.key, c.head = tool+"\x00"+string(p.Args), name
	}
	return c
}

// use adds a file.
func (c *call) use(path string, changed, certain bool) {
	path = snippet.Plain(path)
	if path == "" || events.Units(path) > pathUnits {
		return
	}
	c.uses = append(c.uses, use{path, changed, certain})
}

// commandText reads a command: a text, or an array whose last element is one
// (["bash", "-lc", "make"]).
func commandText(value events.Raw) string {
	all := texts(value)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// texts reads a text or an array of texts.
func texts(value events.Raw) []string {
	if s, ok := events.Text(value); ok {
		return []string{s}
	}
	var all []string
	if value.Kind() != '[' || events.Unmarshal(value, &all) != nil {
		return nil
	}
	return all
}

var (
	// hereDocument finds the file that a shell writes a here-document to.
	hereDocument = regexp.MustCompile(`(?m)(?:^|[\s;&|(])(?:cat\s+>{1,2}|tee\s+(?:-a\s+)?)\s*['"]?([^\s'"<>|&;$]+)['"]?\s*<<`)
	// hereReverse is the same with the document named first.
	hereReverse = regexp.MustCompile(`(?m)<<-?\s*['"]?\w+['"]?\s*>{1,2}\s*['"]?([^\s'"<>|&;$]+)`)
	// quoting are the programs whose output is other texts.
	quoting = []string{"ag", "awk", "cat", "diff", "find", "grep", "head", "jq", "less", "ls", "rg", "sed", "tail"}
)

// command reads the files of a shell command, and what its output is.
func (c *call) command(s string) {
	if strings.Contains(s, "<<") {
		for _, m := range hereDocument.FindAllStringSubmatch(s, -1) {
			c.use(m[1], true, true)
		}
		for _, m := range hereReverse.FindAllStringSubmatch(s, -1) {
			c.use(m[1], true, true)
		}
	}
	if strings.Contains(s, patchPrefix) {
		c.patch(s)
	}
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

const patchPrefix = "*** "

// patch reads the files of a patch in the form of apply_patch.
func (c *call) patch(s string) {
	if !strings.Contains(s, patchPrefix) {
		return
	}
	for l := range strings.Lines(s) {
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(l, head); ok {
				c.use(path, true, c.shell)
			}
		}
	}
}

// readTasks reads the items of a to-do list, in the names that agents give them.
func readTasks(value events.Raw) []task {
	if s, ok := events.Text(value); ok {
		value = events.Raw(s) // some models quote the array
	}
	var items []events.Raw
	if value.Kind() != '[' || events.Unmarshal(value, &items) != nil {
		return nil
	}
	out := []task{}
	for _, item := range items {
		var t task
		if s, ok := events.Text(item); ok {
			t.text = s
		}
		for name, v := range events.Members(item) {
			s, _ := events.Text(v)
			switch plainName(name) {
			case "content", "description", "step", "subject", "task", "text", "title":
				if t.text == "" {
					t.text = s
				}
			case "status", "state":
				s = plainName(s)
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
