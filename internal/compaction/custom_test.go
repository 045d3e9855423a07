package compaction_test

import (
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/reference"
)

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
		i := slices.IndexFunc(raws, func(m codec.Raw) bool { return strings.Contains(string(m), measure.TruncateText) })
		if role := reference.At(reference.Parsed(raws[i]), "role"); i == 0 || role != test.role {
			t.Errorf("%s, %s: the notice is message %d of role %v", test.profile, test.format, i, role)
		}
		back, err := test.format.ReadAll(raws)
		if err != nil {
			t.Fatal(err)
		}
		if back[i].Role != dialect.RoleUser || len(validate.Messages(test.format, raws)) > 0 {
			t.Errorf("%s, %s: it is read as of %s; %v", test.profile, test.format, back[i].Role, validate.Messages(test.format, raws))
		}
	}
}

// longTalk is more than a window of 10,100 tokens takes.
func longTalk(f events.Format) []codec.Raw {
	var list []msg
	for range 20 {
		list = append(list, msg{role: dialect.RoleUser, text: strings.Repeat("word ", 250)}, msg{role: dialect.RoleAssistant, text: strings.Repeat("word ", 250)})
	}
	return messages(f, list...)
}
