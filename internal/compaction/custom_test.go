package compaction_test

import (
	"testing"

	"compactd/internal/compaction"
)

// A1, A8: the profile of the documented release keeps its table of windows, where
// the default takes the smaller of two; the newer release has its own.
func TestCustomWindows(t *testing.T) {
	for profile, want := range map[string]compaction.Tokens{"default": 400_000, "blocks": 400_000, "seed": 1_047_576, "current": 400_000} {
		if got := compaction.CustomOf(profile).Windows().Window("openai", "gpt-5"); got != want {
			t.Errorf("%s: gpt-5 has %d tokens, want %d", profile, got, want)
		}
	}
}

// A1: the documented release counts the definitions of tools without multiplier and
// margin; ours has no margin.
func TestCustomTools(t *testing.T) {
	for profile, want := range map[string]compaction.Tokens{"seed": 100, "current": 128, "default": 123} {
		r := compaction.NewRate(compaction.Profiles[profile], "anthropic")
		if got := compaction.CustomOf(profile).Tools(r, 400); got != want {
			t.Errorf("%s: %d tokens, want %d", profile, got, want)
		}
	}
}
