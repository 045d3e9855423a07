package transcript_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"compactd/internal/ops/transcript"
	"compactd/internal/ops/transcript/transcripttest"
)

// Thinking that was recorded without a signature is in the messages only with ReadThinking,
// also of models whose API has it beside the content.
func TestThinking(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	text := `{"session":"s","kind":"message","role":"user","content":[{"type":"text","text":"go"}]}
{"session":"s","kind":"message","role":"assistant","model":"deepseek-v4","content":[{"type":"thinking","text":"consider"},{"type":"text","text":"done"}],"usage":{"input":300,"output":40}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		read func(string) ([]transcript.Session, error)
		want bool
	}{{transcripttest.Read, false}, {transcripttest.ReadThinking, true}} {
		sessions, err := c.read(path)
		if err != nil {
			t.Fatal(err)
		}
		turn := sessions[0].Turns[0]
		if got := strings.Contains(string(turn.Payload), `"reasoning_content":"consider"`); got != c.want {
			t.Errorf("thinking is in the messages: %t, want %t: %s", got, c.want, turn.Payload)
		}
		if turn.Output != 40 {
			t.Errorf("output %d", turn.Output)
		}
	}
}
