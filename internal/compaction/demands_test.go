package compaction_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/testkit/strict"
)

// sessionFor publishes turns to a session of a provider, and returns its view and what changed.
func sessionFor(t *testing.T, f events.Format, provider, model string, settings object, turns ...[]string) (raw []codec.Raw, changes []events.Edit) {
	t.Helper()
	a := newAgent(t, defaultConfig(t))
	for i, in := range turns {
		turn := object{"turn": i + 1, "format": f, "model": object{"provider": provider, "name": model, "context_window": 100_000, "max_output_tokens": 1000}}
		var list []codec.Raw
		for _, m := range in {
			list = append(list, codec.Raw(m))
		}
		turn["messages"] = list
		maps.Copy(turn, settings)
		a.publish(turn)
	}
	view := a.ledger.View()
	raw, changes, err := render.Render(view, func(s measure.Seq) ([]dialect.Message, error) { return a.texts[s], nil })
	if err != nil {
		t.Fatal(err)
	}
	return raw, changes
}

func edits(changes []events.Edit, op events.Op) (n int) {
	for _, e := range changes {
		if e.Op == op {
			n++
		}
	}
	return n
}

// Of the marks that an agent moved through a session four stay, those of its system prompt and
// tools included: the newest. Up to four, a history keeps its bytes.
func TestMostMarks(t *testing.T) {
	const ephemeral = `{"type":"ephemeral"}`
	marked := map[events.Format]string{
		events.Anthropic: `{"role":"user","content":[{"type":"text","text":"a","cache_control":` + ephemeral + `}]}`,
		events.OpenAI:    `{"role":"user","content":[{"type":"text","text":"a","cache_control":` + ephemeral + `}]}`,
		events.Bedrock:   `{"role":"user","content":[{"text":"a"},{"cachePoint":{"type":"default"}}]}`,
		events.AISDK:     `{"role":"user","content":"a","providerOptions":{"anthropic":{"cacheControl":` + ephemeral + `}}}`,
	}
	for f, user := range marked {
		answer := string(messages(f, msg{role: dialect.RoleAssistant, text: "b"})[0])
		next := string(messages(f, msg{role: dialect.RoleUser, text: "next"})[0])
		for turns, system := range map[int]codec.Raw{7: nil, 6: codec.Raw(`[{"type":"text","text":"s","cache_control":` + ephemeral + `}]`), 4: nil} {
			settings := object{}
			if system != nil {
				settings["system"] = system
			}
			var in [][]string
			for range turns {
				in = append(in, []string{user, answer})
			}
			raw, changes := sessionFor(t, f, "anthropic", "claude-opus-5", settings, append(in, []string{next})...)
			call := strict.Call{Provider: "anthropic", Format: string(f), Model: "claude-opus-5", System: json.RawMessage(system), Tools: json.RawMessage(`[{}]`), Messages: jsonOf(raw)}
			if bad := strict.Refuse(call); len(bad) > 0 {
				t.Fatalf("%s, %d turns: %v in\n%s", f, turns, bad, lines(raw))
			}
			left := 4
			if system != nil {
				left = 3
			}
			kept := 0
			for i := 0; i < 2*turns; i += 2 {
				if bytes.Equal(raw[i], []byte(user)) {
					kept++
				} else if kept > 0 {
					t.Errorf("%s: an older mark stays", f)
				}
			}
			if kept != left || edits(changes, events.OpUnmark) != turns-left {
				t.Errorf("%s, %d turns: %d marks, %+v in\n%s", f, turns, kept, changes, lines(raw))
			}
		}
	}
}

// The newest messages have the marks, of four, that system prompt and tools leave, though one
// message has others before it.
func TestNewestCacheMark(t *testing.T) {
	const cMark = `"cache_control":{"type":"ephemeral"}`
	const point = `{"cachePoint":{"type":"default"}}`
	for f, users := range map[events.Format][2]string{
		events.Anthropic: {
			`{"role":"user","content":[{"type":"text","text":"a",` + cMark + `},{"type":"text","text":"b",` + cMark + `},{"type":"text","text":"c"}]}`,
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b",` + cMark + `},{"type":"text","text":"c"}]}`,
		},
		events.Bedrock: {
			`{"role":"user","content":[{"text":"a"},` + point + `,{"text":"b"},` + point + `,{"text":"c"}]}`,
			`{"role":"user","content":[{"text":"a"},{"text":"b"},` + point + `,{"text":"c"}]}`,
		},
		events.AISDK: {
			`{"role":"user","content":[{"type":"text","text":"a","providerOptions":{"anthropic":{"cacheControl":{"type":"ephemeral"}}}}],"providerOptions":{"anthropic":{"cacheControl":{"type":"ephemeral"}}}}`,
			`{"role":"user","content":[{"type":"text","text":"a","providerOptions":{"anthropic":{}}}],"providerOptions":{"anthropic":{"cacheControl":{"type":"ephemeral"}}}}`,
		},
	} {
		settings := object{
			"system": codec.Raw(`[{"type":"text","text":"s",` + cMark + `},{"type":"text","text":"s",` + cMark + `}]`),
			"tools":  codec.Raw(`[{"name":"n","input_schema":{},` + cMark + `}]`),
		}
		answer := string(messages(f, msg{role: dialect.RoleAssistant, text: "b"})[0])
		next := string(messages(f, msg{role: dialect.RoleUser, text: "next"})[0])
		raw, changes := sessionFor(t, f, "anthropic", "claude-opus-5", settings, []string{users[0], answer}, []string{users[0], answer}, []string{next})
		if string(raw[2]) != users[1] || bytes.Contains(raw[0], []byte("cache")) || edits(changes, events.OpUnmark) != 2 {
			t.Errorf("%s: %+v in\n%s", f, changes, lines(raw))
		}
	}
}

// A history that a user's side ended ends there for a provider that refuses an assistant's
// words at the end, though its last result went to its call.
func TestEndsOnUser(t *testing.T) {
	c := call{id: "call00001", tool: "bash", args: `{}`}
	for _, f := range events.Formats() {
		for _, provider := range []string{"anthropic", "mistral", "openai"} {
			var in []string
			for _, raw := range messages(f, msg{role: dialect.RoleUser, text: "a"}, msg{role: dialect.RoleAssistant, calls: []call{c}}, msg{role: dialect.RoleUser, text: "Go on."},
				msg{role: dialect.RoleAssistant, text: "b"}, msg{role: dialect.RoleTool, results: []result{{id: c.id, tool: "bash", text: "late"}}}) {
				in = append(in, string(raw))
			}
			model := map[string]string{"anthropic": "claude-opus-5", "mistral": "devstral", "openai": "gpt-6"}[provider]
			raw, changes := sessionFor(t, f, provider, model, nil, in)
			if bad := strict.Refuse(strict.Call{Provider: provider, Format: string(f), Model: model, Tools: json.RawMessage(`[{}]`), Messages: jsonOf(raw)}); len(bad) > 0 {
				t.Errorf("%s, %s: %v in\n%s", f, provider, bad, lines(raw))
			}
			if closed := edits(changes, events.OpClose) > 0; closed && !bytes.Contains(raw[len(raw)-1], []byte("[Continue]")) {
				t.Errorf("%s, %s: %+v in\n%s", f, provider, changes, lines(raw))
			}
		}
	}
}

// reasoning_content leaves the history where the provider refuses it, with a message that is
// nothing else, and stands beside each call where it demands it and the agent's model thinks.
func TestReasoningMembers(t *testing.T) {
	const (
		user   = `{"role":"user","content":"a"}`
		called = `{"role":"assistant","content":null,"tool_calls":[{"id":"call00001","type":"function","function":{"name":"n","arguments":"{}"}}]}`
		result = `{"role":"tool","tool_call_id":"call00001","content":"x"}`
		answer = `{"role":"assistant","content":"b","reasoning_content":"I think."}`
		alone  = `{"role":"assistant","content":null,"reasoning_content":"I think."}`
	)
	for provider, want := range map[string]struct {
		reasonings, unbound, blank int
	}{
		"groq": {0, 2, 0}, "cerebras": {0, 2, 0}, "Mistral AI": {0, 2, 0}, "deepseek": {3, 0, 1}, "openai": {2, 0, 0},
	} {
		raw, changes := sessionFor(t, events.OpenAI, provider, "m", nil, []string{user, called, result, answer}, []string{user, alone}, []string{user})
		if bad := strict.Refuse(strict.Call{Provider: strings.ToLower(strings.TrimSuffix(provider, " AI")), Model: "m", Messages: jsonOf(raw)}); len(bad) > 0 {
			t.Errorf("%s: %v in\n%s", provider, bad, lines(raw))
		}
		n := 0
		for _, m := range raw {
			n += bytes.Count(m, []byte(`"reasoning_content"`))
		}
		if n != want.reasonings || edits(changes, events.OpUnbind) != want.unbound || edits(changes, events.OpReason) != want.blank {
			t.Errorf("%s: %d reasonings, %+v in\n%s", provider, n, changes, lines(raw))
		}
	}
	raw, _ := sessionFor(t, events.OpenAI, "deepseek", "m", nil, []string{user, called, result, `{"role":"assistant","content":"b"}`})
	if slices.ContainsFunc(raw, func(m codec.Raw) bool { return bytes.Contains(m, []byte("reasoning_content")) }) {
		t.Errorf("a model that does not think has reasoning:\n%s", lines(raw))
	}
}
