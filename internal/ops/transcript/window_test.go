package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"compactd/internal/events"
)

// A8, B2: the window of a session is that of its model, or what its calls prove; one that the
// transcript states holds, and usage above it is not published. A prompt that fell is of another history.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		name, model string
		uses        []int
		stated      int
		compacts    bool
		window      int64 // of the model of the first turn
		usages      int
		provider    string
	}{
		{name: "of the table", model: "claude-opus-4-5", uses: []int{150_000}, usages: 1, provider: "anthropic"},
		{name: "proved by a call", model: "claude-opus-4-5", uses: []int{90_000, 480_000}, window: 480_000, usages: 2, provider: "anthropic"},
		{name: "of the table, large", model: "claude-sonnet-5", uses: []int{480_000}, usages: 1, provider: "anthropic"},
		{name: "the standard one, by its compaction", model: "claude-opus-4-6", uses: []int{167_000}, compacts: true, window: 200_000, usages: 1, provider: "anthropic"},
		{name: "of another maker", model: "gpt-5.5", uses: []int{243_000}, compacts: true, usages: 1, provider: "openai"},
		{name: "of no known maker", model: "house-model", uses: []int{90_000, 334_871}, window: 334_871, usages: 2, provider: "openai"},
		{name: "of the maker", model: "opencode-go/deepseek-v4-flash", uses: []int{130_000}, window: 1_000_000, usages: 1, provider: "opencode-go"},
		{name: "something was cleared", model: "claude-opus-4-5", uses: []int{150_000, 130_000, 170_000}, usages: 1, provider: "anthropic"},
		{name: "thinking was left out", model: "claude-opus-4-5", uses: []int{150_000, 140_000}, usages: 2, provider: "anthropic"},
		{name: "stated", model: "claude-opus-4-5", uses: []int{9_000, 19_000}, stated: 16_000, window: 16_000, usages: 1, provider: "anthropic"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			for i, n := range c.uses {
				fmt.Fprintf(&b, `{"session":"s","kind":"message","role":"user","content":[{"type":"text","text":"go on %d"}],"meta":{"context_window":%d}}`+"\n", i, c.stated)
				fmt.Fprintf(&b, `{"session":"s","kind":"message","role":"assistant","model":%q,"content":[{"type":"text","text":"done"}],"usage":{"input":%d,"output":7}}`+"\n", c.model, n)
			}
			if c.compacts {
				b.WriteString(`{"session":"s","kind":"compaction"}` + "\n")
			}
			path := filepath.Join(t.TempDir(), "s.jsonl")
			if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			sessions := collect(t, Compactd, path)
			if len(sessions) != 1 {
				t.Fatalf("%d sessions", len(sessions))
			}
			usages := 0
			for i, turn := range sessions[0].Turns {
				in, err := events.DecodeTurn(turn.Payload)
				if err != nil {
					t.Fatal(err)
				}
				if in.Usage != nil {
					usages++
				}
				if i == 0 && (in.Model.ContextWindow != c.window || in.Model.Provider != c.provider) {
					t.Errorf("the model is %+v, want a window of %d at %s", *in.Model, c.window, c.provider)
				}
			}
			if usages != c.usages {
				t.Errorf("%d usages are published, want %d", usages, c.usages)
			}
		})
	}
}
