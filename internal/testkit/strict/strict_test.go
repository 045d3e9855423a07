package strict

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func raws(messages ...string) (out []json.RawMessage) {
	for _, m := range messages {
		out = append(out, json.RawMessage(m))
	}
	return out
}

const (
	question = `{"role":"user","content":"a"}`
	called   = `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"n","input":{}}]}`
	calls    = `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"n","arguments":"{}"}}]}`
)

// Each rule refuses the error that is planted for it, with a source and a date.
func TestPlanted(t *testing.T) {
	plants := map[string]Call{
		"anthropic bound_thinking": {Model: "claude-fable-5-2", Messages: raws(question,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"text","text":"b"}]}`)},
		"anthropic media": {Messages: raws(`{"role":"user","content":[` + strings.Repeat(`{"type":"image"},`, 600) + `{"type":"tool_result","content":[{"type":"image"}]}]}`)},
		"bedrock media": {Model: "anthropic.claude-haiku-4-5", Messages: raws(`{"role":"user","content":[` +
			strings.Repeat(`{"image":{}},`, 100) + `{"toolResult":{"content":[{"image":{}}]}}]}`)},
		"bedrock bound_thinking": {Model: "claude-fable-5-2", Messages: raws(question,
			`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"x","signature":"s"}}},{"text":"b"}]}`)},
		"openrouter bound_thinking": {Model: "claude-fable-5-2", Messages: raws(question,
			`{"role":"assistant","content":"b","reasoning_details":[{"type":"reasoning.text","text":"x","signature":"s"}]}`)},
	}
	for _, rule := range Rules() {
		if rule.Source == "" || len(rule.Providers) == 0 {
			t.Errorf("%s has no source or provider", rule.Name)
		}
		for _, p := range rule.Providers {
			call, ok := plants[p+" "+rule.Name]
			call.Provider = p
			if !ok || !slices.ContainsFunc(Refuse(call), func(r Refusal) bool { return r.Rule == rule.Name }) {
				t.Errorf("%s takes what %s refuses", p, rule.Name)
			}
		}
	}
}

// The rules of package validate refuse a call, in the dialect of its provider; Anthropic takes
// neighbours of one role, as one message.
func TestValidated(t *testing.T) {
	for want, call := range map[string]Call{
		"":                 {Provider: "anthropic", Messages: raws(question, question)},
		"roles_alternate":  {Provider: "vllm", Messages: raws(question, question)},
		"call_answered":    {Provider: "anthropic", Messages: raws(question, called, question)},
		"call_id":          {Provider: "mistral", Messages: raws(question, calls, `{"role":"tool","tool_call_id":"c1","content":"x"}`)},
		"prefill":          {Provider: "anthropic", Model: "claude-opus-5", Messages: raws(question, `{"role":"assistant","content":"b"}`)},
		"first_is_user":    {Format: "gemini", Provider: "google", Messages: raws(`{"role":"model","parts":[{"text":"a"}]}`, `{"role":"user","parts":[{"text":"a"}]}`)},
		"reasoning_absent": {Provider: "deepseek", Messages: raws(question, calls, `{"role":"tool","tool_call_id":"c1","content":"x"}`)},
		"tools_absent": {Provider: "bedrock", Messages: raws(
			`{"role":"user","content":[{"text":"a"}]}`, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"n","input":{}}}]}`,
			`{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[]}}]}`,
		)},
	} {
		var rules []string
		for _, r := range Refuse(call) {
			rules = append(rules, r.Rule)
		}
		if got := strings.Join(rules, " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A model takes its thinking back behind the history that it was made under, also where the
// oldest of it was left out or a mark for the cache moved. It refuses it behind any other.
func TestBound(t *testing.T) {
	call := Call{Provider: "anthropic", Model: "claude-opus-5-5", System: json.RawMessage(`"s"`), Messages: raws(question)}
	answer := func(text string) {
		content, _ := json.Marshal([]json.RawMessage{Think(call, text), json.RawMessage(`{"type":"text","text":"b"}`)})
		call.Messages = append(slices.Clone(call.Messages), json.RawMessage(`{"role":"assistant","content":`+string(content)+`}`), json.RawMessage(question))
	}
	answer("one")
	answer("two")
	answer("three")
	const bare = `{"role":"assistant","content":[{"type":"text","text":"b"}]}`
	for name, test := range map[string]struct {
		change func(*Call)
		taken  bool
	}{
		"unchanged":      {func(*Call) {}, true},
		"oldest without": {func(c *Call) { c.Messages[1] = json.RawMessage(bare) }, true},
		"mark": {func(c *Call) {
			c.Messages[0] = json.RawMessage(`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`)
		}, true},
		"middle without": {func(c *Call) { c.Messages[3] = json.RawMessage(bare) }, false},
		"message":        {func(c *Call) { c.Messages[2] = json.RawMessage(`{"role":"user","content":"x"}`) }, false},
		"system":         {func(c *Call) { c.System = json.RawMessage(`"x"`) }, false},
		"tools":          {func(c *Call) { c.Tools = json.RawMessage(`[]`) }, false},
		"older model":    {func(c *Call) { c.Model, c.System = "claude-opus-5", json.RawMessage(`"x"`) }, true},
	} {
		changed := call
		changed.Messages = slices.Clone(call.Messages)
		test.change(&changed)
		if got := Refuse(changed); (len(got) == 0) != test.taken {
			t.Errorf("%s: %v", name, got)
		}
	}
}
