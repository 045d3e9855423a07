package render_test

import (
	"testing"

	"compactd/internal/compaction/render"
)

// The models that take the system's messages within a conversation, by names that platforms
// give them.
func TestSystemInside(t *testing.T) {
	for name, want := range map[string]bool{
		"claude-opus-4-8": true, "claude-opus-4-8-20260528": true, "anthropic.claude-opus-4-8-v1:0": true,
		"claude-opus-5": true, "claude-opus-5-5": true, "anthropic/claude-opus-4.8": true, "claude-fable-5-1@20260701": true,
		"claude-mythos-5": true, "claude-sonnet-5.5": true, "claude-haiku-5-5": true,
		"": false, "claude-sonnet-5": false, "claude-sonnet-5-20260601": false, "claude-opus-4-7": false, "claude-haiku-4-5": false,
		"claude-opus-4-20250514": false, "claude-3-5-sonnet-20241022": false, "claude-opus-50": false, "gpt-5": false,
	} {
		if got := render.SystemInside(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
