package measure_test

import (
	"testing"

	"compactd/internal/compaction/measure"
)

// A1, A8: the profile of the documented release keeps its table of windows, where
// the default takes the smaller of two; the newer release has its own.
func TestCustomWindows(t *testing.T) {
	for profile, want := range map[string]measure.Tokens{"default": 400_000, "blocks": 400_000, "seed": 1_047_576, "current": 400_000} {
		if got := measure.CustomOf(profile).Windows().Table().Window("openai", "gpt-5"); got != want {
			t.Errorf("%s: gpt-5 has %d tokens, want %d", profile, got, want)
		}
	}
}

// A8: a window is found under every name of its provider.
func TestWindowsOfNamesakes(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		want            measure.Tokens
	}{
		{"moonshot", "kimi-k2-thinking", 262_144},
		{"moonshotai", "kimi-k2-thinking", 262_144},
		{"moonshotai-cn", "kimi-k2-turbo-preview", 262_144},
		{"moonshotai.chat", "kimi-k2-0711-preview", 131_072},
		{"minimax-cn", "MiniMax-M3", 1_000_000},
		{"hosted_vllm", "no-model", 128_000},
	} {
		if got := measure.DefaultWindows().Table().Window(c.provider, c.model); got != c.want {
			t.Errorf("%s %s has %d tokens, want %d", c.provider, c.model, got, c.want)
		}
	}
}

// A1: the documented release counts the definitions of tools without multiplier and
// margin; ours has no margin.
func TestCustomTools(t *testing.T) {
	for profile, want := range map[string]measure.Tokens{"seed": 100, "current": 128, "default": 123} {
		r := measure.NewRate(measure.Profiles[profile], "anthropic")
		if got := measure.CustomOf(profile).Tools(r, 400); got != want {
			t.Errorf("%s: %d tokens, want %d", profile, got, want)
		}
	}
}
