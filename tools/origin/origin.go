// Package origin finds where a recorded session is from: the program that recorded it, and the
// repository that its agent worked on.
//
//	program := origin.Harness(turns)
//	group := origin.Repository(session.Name)
//
// # Guarantees
//
// Sessions of one repository have one group, so that a figure can be measured on repositories that
// nothing was fitted to.
//
// # Concurrency
//
// The functions are safe for concurrent use.
//
// # On failure
//
// A program whose tools are not known is "other". A name that ends otherwise than the known ones
// is a group of its own.
package origin

import (
	"regexp"
	"slices"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// harnesses are the programs that record sessions, by the tools that their models have. Where
// several have a tool, an argument of its calls decides; the first row that explains the most
// calls of a session is its harness.
var harnesses = []struct {
	name  string
	tools string // each with an argument behind a colon, or any
}{
	{"mini-swe-agent", "bash:command"},
	{"claude-code", "Agent Bash Edit EnterPlanMode ExitPlanMode Glob Grep KillShell MultiEdit NotebookEdit Read Skill Task TaskOutput TodoWrite ToolSearch WebFetch WebSearch Write"},
	{"codex", "apply_patch:input exec:input exec_command local_shell shell update_plan view_image wait write_stdin"},
	{"copilot", "apply_patch:_raw bash:description create edit:old_str glob grep report_intent rg sql str_replace_editor task view"},
	{"opencode", "bash:description edit:oldString glob grep list patch read:filePath task todowrite webfetch write:filePath"},
	{"oh-my-pi", "bash:i edit:i find:i grep:i hub:i read:i task:i todo:i write:i yield"},
	{"pi", "bash:command edit:oldText edit:edits find grep ls read:path write:path"},
	{"openhands", "browser execute_bash execute_ipython_cell file_editor finish str_replace_editor task_tracker terminal think"},
}

// Harness is the harness whose tools explain most of the calls of a session, "other" where none
// explains half of them.
func Harness(turns [][]dialect.Message) string {
	counts := make([]int, len(harnesses))
	calls := 0
	for _, messages := range turns {
		for i := range messages {
			for k := range messages[i].Parts {
				p := &messages[i].Parts[k]
				if p.Kind != dialect.PartCall {
					continue
				}
				calls++
				for n, h := range harnesses {
					if has(h.tools, p) {
						counts[n]++
					}
				}
			}
		}
	}
	best := slices.Index(counts, slices.Max(counts))
	if 2*counts[best] <= calls {
		return "other"
	}
	return harnesses[best].name
}

// has reports whether a call is of a tool of a list.
func has(list string, p *dialect.Part) bool {
	for entry := range strings.FieldsSeq(list) {
		tool, argument, bound := strings.Cut(entry, ":")
		if tool != p.Tool {
			continue
		}
		if !bound {
			return true
		}
		for name := range codec.Members(p.Args) {
			if name == argument {
				return true
			}
		}
	}
	return false
}

// The sessions of one repository differ in: a hash or a number at the end of their
// names, or the name of an instance of SWE-bench.
var (
	numbered = regexp.MustCompile(`-[0-9a-f]*[0-9][0-9a-f]*$`)
	instance = regexp.MustCompile(`-[^-]*__.*$`)
)

// Repository is what the sessions of one repository have in common in their names.
func Repository(session string) string {
	return instance.ReplaceAllString(numbered.ReplaceAllString(session, ""), "")
}
