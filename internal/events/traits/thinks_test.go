package traits_test

import (
	"testing"

	"compactd/internal/events/traits"
)

func TestHidesThinking(t *testing.T) {
	for model, want := range map[string]bool{
		"claude-sonnet-5": true, "us.anthropic.claude-opus-4-5-20251101-v1:0": true, "claude-3-7-sonnet-20250219": true,
		"claude-3-5-sonnet-20241022": false, "claude-3-haiku": false, "claude": false,
		"gpt-5.6-sol": true, "openai/gpt-5": true, "o3-mini": true, "gpt-4o": false, "gpt-4.1": false,
		"gemini-2.5-pro": true, "google/gemini-3-pro-preview": true, "gemini-1.5-flash": false,
		"deepseek-v4": false, "": false,
	} {
		if got := traits.HidesThinking(model); got != want {
			t.Errorf("%s: %t, want %t", model, got, want)
		}
	}
}
