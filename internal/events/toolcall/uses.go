package toolcall

import (
	"iter"
	"path"
	"slices"
	"strings"

	"compactd/internal/events/codec"
)

// Use is one use of a file.
type Use struct {
	Path    string
	Changed bool
	// Certain: it happened even if the call failed at its end.
	Certain bool
}

// Uses lists the files of a call, in the order in which it names them. A tool that is not in
// the table changes the file that it names if its name has a verb of change.
func Uses(tool string, args codec.Raw) iter.Seq[Use] {
	return func(yield func(Use) bool) { visitUses(tool, args, &visit{yield: yield}) }
}

// visit passes the files of a call on, until the caller has enough of them.
type visit struct {
	yield   func(Use) bool
	changes bool // only changed files are wanted
	done    bool
	joined  int // bytes of joined paths
}

const (
	// maxPath is the longest path of Linux, in bytes: a longer one is unknown if it is joined from two.
	maxPath = 4_096
	// maxJoined bounds all paths of a call that are joined, in bytes: further ones are unknown. A call may name a long
	// directory once, and a million files in it.
	maxJoined = 16 << 20
)

// join is the path of a file in a directory, "" if it is unknown.
func (v *visit) join(dir, file string) string {
	n := len(dir) + len("/") + len(file)
	if n > maxPath || v.joined > maxJoined {
		return ""
	}
	v.joined += n
	return path.Join(dir, file)
}

func (v *visit) add(u Use) {
	if !v.done && u.Path != "" && !strings.Contains(u.Path, "://") {
		v.done = !v.yield(u)
	}
}

func visitUses(tool string, args codec.Raw, out *visit) {
	kind := KindOf(tool, args)
	name := PlainName(base(tool))
	if kind == Other && slices.ContainsFunc(changeVerbs, func(v string) bool { return strings.Contains(name, v) }) {
		kind = Writes
	}
	switch kind {
	case Reads:
		for _, path := range paths(args, nil) {
			out.add(Use{Path: path})
		}
	case Writes:
		for _, path := range paths(args, nil) {
			out.add(Use{Path: path, Changed: true})
		}
		for name, value := range codec.Members(args) {
			if lookUp(otherPaths, name) {
				out.add(Use{Path: codec.String(value), Changed: true})
			}
			if s, ok := codec.Text(value); ok && lookUp(patchArguments, name) {
				patch(s, false, out)
			}
		}
		if s, ok := codec.Text(args); ok { // a tool without members
			patch(s, false, out)
		}
	case Shell:
		run(args, out)
	}
}

// File is the file of a call as far as a ledger has it: of a read the file, or the list of
// its files, and the arguments beside; of any other the first that it changes.
func File(tool string, args codec.Raw) (path string, rest []string, changes bool) {
	switch kind := KindOf(tool, args); kind {
	case Reads:
		all := paths(args, &rest)
		slices.Sort(rest)
		return strings.Join(all, ", "), rest, false
	case Writes, Shell:
		path, changes = firstChanged(tool, args)
		return path, nil, changes || kind == Writes
	}
	return "", nil, false
}

// firstChanged is the first file that a call changes. Apart from [File], whose reads allocate nothing for it.
func firstChanged(tool string, args codec.Raw) (path string, found bool) {
	visitUses(tool, args, &visit{changes: true, yield: func(u Use) bool {
		path, found = u.Path, true
		return false
	}})
	return path, found
}

// paths lists those among the arguments of a call, and puts the other arguments into rest.
func paths(args codec.Raw, rest *[]string) (out []string) {
	for name, value := range codec.Members(args) {
		if value.Kind() == 'n' {
			continue
		}
		switch s, text := codec.Text(value); {
		case text && s != "" && len(out) == 0 && lookUp(pathArguments, name):
			at := lineRange(s)
			if at < len(s) && rest != nil {
				*rest = append(*rest, s[at:])
			}
			out = append(out, s[:at])
			continue
		case !text && (lookUp(listArguments, name) || lookUp(pathArguments, name)):
			if listed := pathsIn(value, 2); len(listed) > 0 {
				out = append(out, listed...)
				continue
			}
		}
		if s, _ := codec.Text(value); rest != nil && !lookUp(idleArguments, name) && !(s == "view" && lookUp(commandArguments, name)) {
			*rest = append(*rest, name+"\x00"+string(value))
		}
	}
	return out
}

// lineRange is where the lines begin that some harnesses write behind a path, as in
// main.go:20-40,60; the end of the path for none.
func lineRange(path string) int {
	i := strings.LastIndexByte(path, ':')
	if i <= 1 || i+1 == len(path) || strings.Trim(path[i+1:], "0123456789-,+") != "" {
		return len(path)
	}
	return i
}

// pathsIn lists the paths of an array of texts, or of objects that have one each.
func pathsIn(value codec.Raw, depth int) []string {
	var out pathList
	switch value.Kind() {
	case '[':
		for _, item := range codec.Elements(value) {
			if item.Kind() == '"' {
				out.addText(item)
				continue
			}
			for _, s := range pathsIn(item, depth) {
				out.add(s)
			}
		}
	case '{':
		for name, v := range codec.Members(value) {
			switch {
			case lookUp(pathArguments, name) && v.Kind() == '"':
				out.addText(v)
			case v.Kind() == '{' && depth > 0:
				for _, s := range pathsIn(v, depth-1) {
					out.append(s)
				}
			}
		}
	}
	return out.all
}

// pathList lists paths.
type pathList struct {
	all   []string
	known map[string]bool
}

// add adds a path if it is new.
func (l *pathList) add(s string) {
	if !l.known[s] {
		l.append(s)
	}
}

// append adds a path.
func (l *pathList) append(s string) {
	if l.known == nil {
		l.known = map[string]bool{}
	}
	l.known[s] = true
	l.all = append(l.all, s)
}

// addText adds a path that is a JSON string.
func (l *pathList) addText(item codec.Raw) {
	if s, ok := codec.Text(item); ok && s != "" && !strings.ContainsAny(s, "*?") {
		l.add(s)
	}
}

// patchHeads begin the lines of a patch that name a file.
var patchHeads = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}

// patch adds the files of a patch in the form of apply_patch, or of a diff.
func patch(s string, certain bool, out *visit) {
	if !strings.Contains(s, "*** ") {
		if strings.Contains(s, "\n+++ ") || strings.HasPrefix(s, "+++ ") {
			diff(s, certain, out)
		}
		return
	}
	for l := range strings.Lines(s) {
		if out.done {
			return
		}
		for _, head := range patchHeads {
			if path, ok := strings.CutPrefix(l, head); ok {
				out.add(Use{strings.TrimSpace(path), true, certain})
			}
		}
	}
}

// diff adds the files of a unified diff.
func diff(s string, certain bool, out *visit) {
	for l := range strings.Lines(s) {
		if out.done {
			return
		}
		path, ok := strings.CutPrefix(l, "+++ ")
		path, _, _ = strings.Cut(strings.TrimSpace(path), "\t")
		if ok && path != "/dev/null" {
			out.add(Use{strings.TrimPrefix(path, "b/"), true, certain})
		}
	}
}

// Command is the command line of a call of a shell, "" for none: a text, or an array whose
// last element is one (["bash", "-lc", "make"]).
func Command(args codec.Raw) string {
	if s, ok := codec.Text(args); ok {
		return s
	}
	for name, value := range codec.Members(args) {
		if !lookUp(commandArguments, name) {
			continue
		}
		if value.Kind() == '{' {
			return Command(value)
		}
		if all := texts(value); len(all) > 0 {
			return all[len(all)-1]
		}
	}
	return ""
}

// texts reads a text or an array of texts.
func texts(value codec.Raw) []string {
	if s, ok := codec.Text(value); ok {
		return []string{s}
	}
	var out []string
	for _, item := range codec.Elements(value) {
		s, ok := codec.Text(item)
		if !ok {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// run adds the files of a call of a shell.
func run(args codec.Raw, out *visit) {
	if s, ok := codec.Text(args); ok { // a text alone: a command, or a program that runs some
		if strings.Contains(s, "tools.") {
			program(s, out)
			return
		}
		command(s, out)
		return
	}
	for name, value := range codec.Members(args) {
		if s, ok := codec.Text(value); ok && name == "input" && strings.Contains(s, "tools.") {
			program(s, out)
			continue
		}
		if !lookUp(commandArguments, name) {
			continue
		}
		switch s, ok := codec.Text(value); {
		case ok:
			command(s, out)
		case value.Kind() == '{':
			run(value, out)
		default:
			all := texts(value)
			if PlainName(name) == "commands" { // a line each
				for _, s := range all {
					command(s, out)
				}
				continue
			}
			p := parser{out: out}
			for _, s := range all {
				if strings.HasPrefix(s, patchBegin) {
					patch(s, false, out)
				}
				p.words = append(p.words, word{text: s, quoted: true})
			}
			p.end(true)
		}
	}
}

// program adds the files of the commands and patches in a program: of Codex, whose tool exec
// runs scripts such as tools.exec_command({cmd: "make"}).
func program(s string, out *visit) {
	quotes := "\"'`" // that may have an end
	for i := 0; i < len(s) && !out.done; {
		if strings.IndexByte(quotes, s[i]) < 0 {
			i++
			continue
		}
		text, n := literal(s[i:])
		if n == 0 { // no later one of its kind has an end either
			quotes = strings.ReplaceAll(quotes, s[i:i+1], "")
			continue
		}
		before := strings.TrimRight(s[max(0, i-16):i], " \t")
		key := strings.TrimRight(strings.TrimSuffix(before, ":"), `"'`)
		switch {
		case key != before && (strings.HasSuffix(key, "cmd") || strings.HasSuffix(key, "command")):
			command(text, out)
		case strings.Contains(text, patchBegin):
			patch(text, false, out)
		}
		i += n
	}
}

const patchBegin = "*** Begin Patch"

// literal reads the string of a program that s begins with, and its length with both quotes, 0
// for none.
func literal(s string) (text string, n int) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			return b.String(), i + 1
		case c != '\\':
			b.WriteByte(c)
		case i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			default:
				b.WriteByte(s[i])
			}
		}
	}
	return "", 0
}
