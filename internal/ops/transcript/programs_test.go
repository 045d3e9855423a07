package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The sessions of each program are found where it keeps them, and where its variable has moved
// them.
func TestInstalled(t *testing.T) {
	home := t.TempDir()
	variables := map[string]string{
		"CLAUDE_CONFIG_DIR": ".claude", "CODEX_HOME": ".codex", "XDG_DATA_HOME": ".local/share", "PI_CODING_AGENT_DIR": ".pi/agent",
		"OMP_CODING_AGENT_DIR": ".omp/agent", "COPILOT_HOME": ".copilot", "GEMINI_CLI_HOME": "", "MSWEA_GLOBAL_CONFIG_DIR": ".config/mini-swe-agent",
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("OPENCODE_DB", "")
	for name := range variables {
		t.Setenv(name, "")
	}
	if s, places := Installed(); s.Len() > 0 || len(places) > 0 {
		t.Fatalf("an empty home has %v", places)
	}
	for name, text := range map[string]string{
		".claude/projects/-w/s.jsonl":                         `{"type":"user","uuid":"1","message":{"role":"user","content":"hi"}}`,
		".codex/sessions/2026/07/02/rollout-1.jsonl":          `{"timestamp":"2026-07-02T10:00:00Z","type":"session_meta","payload":{"id":"1"}}`,
		".codex/archived_sessions/rollout-2.jsonl":            `{"timestamp":"2026-07-02T10:00:00Z","type":"session_meta","payload":{"id":"2"}}`,
		".local/share/opencode/storage/session/p/ses_1.json":  `{"id":"ses_1","projectID":"p","title":"x","time":{}}`,
		".local/share/opencode/storage/message/ses_1/m1.json": `{"id":"m1","role":"user","time":{}}`,
		".pi/agent/sessions/--w--/s.jsonl":                    `{"type":"session","id":"1","cwd":"/w"}`,
		".omp/agent/sessions/--w--/s.jsonl":                   `{"type":"session","id":"2","cwd":"/w"}`,
		".copilot/session-state/1/events.jsonl":               `{"type":"session.start","data":{"sessionId":"1"},"id":"e","parentId":null}`,
		".gemini/tmp/f00/chats/session-1.jsonl":               `{"sessionId":"1","projectHash":"f00"}`,
		".config/mini-swe-agent/last_mini_run.traj.json":      `{"info":{},"messages":[],"trajectory_format":"mini-swe-agent-1.1"}`,
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := `Claude Code: 1 file in ~/.claude/projects
Codex: 1 file in ~/.codex/sessions
Codex: 1 file in ~/.codex/archived_sessions
opencode: 1 file in ~/.local/share/opencode/storage
pi: 1 file in ~/.pi/agent/sessions
oh-my-pi: 1 file in ~/.omp/agent/sessions
Copilot CLI: 1 file in ~/.copilot/session-state
Gemini CLI: 1 file in ~/.gemini/tmp
mini-swe-agent: 1 file in ~/.config/mini-swe-agent`
	s, places := Installed()
	if diff := cmp.Diff(want, Describe(places)); diff != "" || s.Len() != 9 || s.Bytes() == 0 {
		t.Errorf("%d files of %d bytes (-want +got):\n%s", s.Len(), s.Bytes(), diff)
	}
	t.Setenv("HOME", t.TempDir())
	for name, dir := range variables {
		t.Setenv(name, filepath.Join(home, dir))
	}
	_, places = Installed()
	if diff := cmp.Diff(want, strings.ReplaceAll(Describe(places), home, "~")); diff != "" {
		t.Errorf("where variables have them (-want +got):\n%s", diff)
	}
}
