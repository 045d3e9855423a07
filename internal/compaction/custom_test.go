package compaction_test

import (
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/validate"
)

// A1, A8: the profile of the documented release keeps its table of windows, where
// the default takes the smaller of two; the newer release has its own.
func TestCustomWindows(t *testing.T) {
	for profile, want := range map[string]compaction.Tokens{"default": 400_000, "blocks": 400_000, "seed": 1_047_576, "current": 400_000} {
		if got := measure.CustomOf(profile).Windows().Table().Window("openai", "gpt-5"); got != want {
			t.Errorf("%s: gpt-5 has %d tokens, want %d", profile, got, want)
		}
	}
}

// A8: a window is found under every name of its provider.
func TestWindowsOfNamesakes(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		want            compaction.Tokens
	}{
		{"moonshot", "kimi-k2-thinking", 262_144},
		{"moonshotai", "kimi-k2-thinking", 262_144},
		{"moonshotai-cn", "kimi-k2-turbo-preview", 262_144},
		{"moonshotai.chat", "kimi-k2-0711-preview", 131_072},
		{"minimax-cn", "MiniMax-M3", 1_000_000},
		{"hosted_vllm", "no-model", 128_000},
	} {
		if got := compaction.DefaultWindows().Table().Window(c.provider, c.model); got != c.want {
			t.Errorf("%s %s has %d tokens, want %d", c.provider, c.model, got, c.want)
		}
	}
}

// A1: the documented release counts the definitions of tools without multiplier and
// margin; ours has no margin.
func TestCustomTools(t *testing.T) {
	for profile, want := range map[string]compaction.Tokens{"seed": 100, "current": 128, "default": 123} {
		r := measure.NewRate(measure.Profiles[profile], "anthropic")
		if got := measure.CustomOf(profile).Tools(r, 400); got != want {
			t.Errorf("%s: %d tokens, want %d", profile, got, want)
		}
	}
}

// A1, C2b: the system role has the placeholders of hidden messages where the profile sets it
// so, in the dialect of the reference alone. A history that is given back with such
// a message keeps it in its place: it is no word of the system's.
func TestCustomPlaceholders(t *testing.T) {
	for _, test := range []struct {
		profile string
		format  events.Format
		role    string
	}{
		{"seed", events.NeuroLink, "system"},
		{"current", events.NeuroLink, "user"},
		{"default", events.NeuroLink, "user"},
		{"seed", events.OpenAI, "user"},
		{"seed", events.Anthropic, "user"},
	} {
		policy := withoutSummaries()
		policy.Profile = test.profile
		a := newAgent(t, configOf(t, policy))
		emitted := a.publish(object{
			"model":  object{"provider": "openai", "name": "m", "context_window": 10_100, "max_output_tokens": 100},
			"format": test.format, "messages": longTalk(test.format),
		})
		if len(emitted) == 0 || emitted[0].View == nil {
			t.Fatalf("%s, %s: emitted %+v", test.profile, test.format, emitted)
		}
		raws, err := a.render(emitted[0].View)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(raws, func(m events.Raw) bool { return strings.Contains(string(m), measure.TruncateText) })
		if role := at(parsed(raws[i]), "role"); i == 0 || role != test.role {
			t.Errorf("%s, %s: the notice is message %d of role %v", test.profile, test.format, i, role)
		}
		back, err := test.format.ReadAll(raws)
		if err != nil {
			t.Fatal(err)
		}
		if back[i].Role != events.RoleUser || len(validate.Messages(test.format, raws)) > 0 {
			t.Errorf("%s, %s: it is read as of %s; %v", test.profile, test.format, back[i].Role, validate.Messages(test.format, raws))
		}
	}
}

// longTalk is more than a window of 10,100 tokens takes.
func longTalk(f events.Format) []events.Raw {
	var list []msg
	for range 20 {
		list = append(list, msg{role: events.RoleUser, text: strings.Repeat("word ", 250)}, msg{role: events.RoleAssistant, text: strings.Repeat("word ", 250)})
	}
	return messages(f, list...)
}
