package toolcall

import (
	"strings"
	"unicode/utf8"

	"compactd/internal/events/codec"
)

// Kind is what a tool does with the files that its arguments name.
type Kind uint8

// The kinds of tools.
const (
	Other Kind = iota
	Reads
	Writes
	Shell  // it runs a command line
	editor // it reads with the command view, and writes with every other
	script // its program calls the tools that run commands and patches
)

// tools has the names of tools in small letters, without "_" and "-".
var tools = func() map[string]Kind {
	out := map[string]Kind{}
	for k, names := range map[Kind]string{
		// Claude Code, opencode, pi: read. Copilot: view, read_file. Gemini CLI: read_file,
		// read_many_files. Cline, Roo, Cursor: read_file. Codex: view_image. MCP's server of
		// files: read_text_file, read_multiple_files. Amazon Q: fs_read. SWE-agent: open.
		Reads: "cat fileread fsread getfilecontents notebookread open openfile read readfile readfiles readmanyfiles " +
			"readmediafile readmultiplefiles readnotebook readtextfile view viewfile viewimage",
		// Claude Code: Edit, MultiEdit, NotebookEdit, Write. opencode: edit, patch, write. Codex:
		// apply_patch. Copilot: create, edit, insert_edit_into_file, replace_string_in_file. Gemini
		// CLI: replace, write_file. Cline, Roo: apply_diff, insert_content, replace_in_file,
		// search_and_replace, write_to_file. OpenHands: edit_file. Amazon Q: fs_write.
		Writes: "appendfile appendtofile applydiff applypatch create createfile createnewfile deletefile edit editexistingfile " +
			"editfile editnotebook editnotebookfile filecreate fileedit filewrite fswrite insert inserteditintofile insertcontent " +
			"movefile multiedit multireplacestringinfile multistrreplace newfile notebookedit patch removefile renamefile replace " +
			"replaceinfile replacestringinfile savefile searchandreplace searchreplace singlefindandreplace strreplace updatefile " +
			"write writefile writenotebook writetofile",
		editor: "fileeditor memory strreplacebasededittool strreplaceeditor texteditor",
		// Claude Code, opencode, pi, mini-swe-agent, Copilot: bash. Codex: shell, exec_command,
		// local_shell. Copilot: run_in_terminal. Cursor: run_terminal_cmd. Cline, Roo:
		// execute_command. Gemini CLI: run_shell_command. OpenHands: execute_bash, terminal.
		Shell: "bash cmd containerexec execbash execcommand executebash executecommand localshell runbash runcommand runinterminal " +
			"runshellcommand runterminalcmd runterminalcommand shell shellcommand shellexec terminal",
		script: "exec",
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = k
		}
	}
	return out
}()

// changeVerbs are parts of names of tools that are not in the table and change the file they
// name.
var changeVerbs = []string{
	"append", "create", "delete", "edit", "insert", "move", "patch", "remove", "rename", "replace", "save", "update", "write",
}

// The names of arguments, in the same form.
var (
	pathArguments = setOf("absolutepath file filename filepath notebookpath path relativepath relativeworkspacepath targetfile")
	// listArguments hold several paths, or objects with one each.
	listArguments = setOf("args edits filepaths files include operation operations paths replacements")
	// otherPaths are those of tools that move files.
	otherPaths       = setOf("destination newpath oldpath source")
	commandArguments = setOf("action cmd command commandline commands script")
	// idleArguments state why a call is made: they change nothing of its result.
	idleArguments  = setOf("description explanation i intent purpose reason taskprogress thought")
	patchArguments = setOf("command diff input patch patchtext raw")
)

func setOf(names string) map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		out[name] = true
	}
	return out
}

var separators = strings.NewReplacer("_", "", "-", "")

// longestName bounds the names that are looked for.
const longestName = 40

// lookUp returns the value of a name in small letters, without "_" and "-".
func lookUp[T any](table map[string]T, name string) (v T) {
	var room [longestName]byte
	plain := room[:0]
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_' || c == '-':
		case c >= utf8.RuneSelf:
			return table[PlainName(name)]
		case len(plain) == len(room):
			return v
		case 'A' <= c && c <= 'Z':
			plain = append(plain, c+'a'-'A')
		default:
			plain = append(plain, c)
		}
	}
	return table[string(plain)]
}

// PlainName is a name in the form of the table.
func PlainName(s string) string { return strings.ToLower(separators.Replace(s)) }

// base is the name of a tool without that of its server or its group: mcp__files__read_file,
// functions.exec_command.
func base(tool string) string {
	if i := strings.LastIndex(tool, "__"); i >= 0 && i+2 < len(tool) {
		tool = tool[i+2:]
	}
	if i := strings.LastIndexAny(tool, ".:/"); i >= 0 && i+1 < len(tool) {
		tool = tool[i+1:]
	}
	return tool
}

// KindOf is what a call of a tool does: Reads, Writes, Shell or Other.
func KindOf(tool string, args codec.Raw) Kind {
	k := lookUp(tools, tool)
	if k == Other {
		k = lookUp(tools, base(tool))
	}
	switch k {
	case editor:
		for name, value := range codec.Members(args) {
			if s, _ := codec.Text(value); s == "view" && lookUp(commandArguments, name) {
				return Reads
			}
		}
		return Writes
	case script:
		return Shell
	}
	return k
}
