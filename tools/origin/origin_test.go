package origin

import (
	"fmt"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

func TestHarness(t *testing.T) {
	for _, c := range []struct{ want, calls string }{
		{"claude-code", `Bash{"command":"ls"} Edit{"old_string":"a"}`},
		{"codex", `exec_command{"cmd":"ls"} apply_patch{"input":"p"}`},
		{"codex", `exec{"input":"tools.exec_command()"}`},
		{"copilot", `bash{"command":"ls","description":"list"} view{"path":"a"} apply_patch{"_raw":"p"}`},
		{"opencode", `bash{"command":"ls","description":"list"} edit{"filePath":"a","oldString":"b"} read{"filePath":"a"}`},
		{"pi", `bash{"command":"ls"} edit{"path":"a","oldText":"b"} read{"path":"a"}`},
		{"oh-my-pi", `bash{"command":"ls","i":"list"} edit{"i":"fix","input":"p"} read{"path":"a","i":"read"}`},
		{"mini-swe-agent", `bash{"command":"ls"} bash{"command":"sed"}`},
		{"openhands", `execute_bash{"command":"ls"} str_replace_editor{"command":"view"} finish{}`},
		{"other", `book{"flight":"1"}`},
	} {
		var m dialect.Message
		for call := range strings.SplitSeq(c.calls, " ") {
			tool, args, _ := strings.Cut(call, "{")
			m.Parts = append(m.Parts, dialect.Part{Kind: dialect.PartCall, Tool: tool, Args: codec.Raw("{" + args)})
		}
		if got := Harness([][]dialect.Message{{m}}); got != c.want {
			t.Errorf("%s: %s, want %s", c.calls, got, c.want)
		}
	}
}

func TestRepository(t *testing.T) {
	for session, want := range map[string]string{
		"cc-agent-plugins-0ba4ee097a": "cc-agent-plugins", "cc-258c7280": "cc", "pi-before-compaction": "pi-before-compaction",
		"mini-django__django-11138": "mini", "example-rename-flag": "example-rename-flag",
	} {
		if got := Repository(session); got != want {
			t.Errorf("%s", fmt.Sprintf("%s: %s, want %s", session, got, want))
		}
	}
}
