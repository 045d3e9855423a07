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
		"anthropic roles":          {Messages: raws(`{"role":"assistant","content":"a"}`)},
		"anthropic content":        {Messages: raws(`{"role":"user","content":" "}`)},
		"anthropic tool_ids":       {Messages: raws(question, `{"role":"assistant","content":[{"type":"tool_use","id":"a b","name":"n","input":{}}]}`)},
		"anthropic tool_results":   {Messages: raws(question, called, question)},
		"anthropic final_thinking": {Messages: raws(question, `{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"}]}`)},
		"anthropic cache_control": {Messages: raws(`{"role":"user","content":[` +
			`{"type":"text","text":"a","cache_control":{}},{"type":"text","text":"a","cache_control":{}},{"type":"text","text":"a","cache_control":{}},` +
			`{"type":"text","text":"a","cache_control":{}},{"type":"text","text":"a","cache_control":{}}]}`)},
		"anthropic bound_thinking": {Model: "claude-fable-5-2", Messages: raws(question,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"text","text":"b"}]}`)},
		"anthropic media": {Messages: raws(`{"role":"user","content":[` + strings.Repeat(`{"type":"image"},`, 600) + `{"type":"tool_result","content":[{"type":"image"}]}]}`)},
		"bedrock media": {Model: "anthropic.claude-haiku-4-5", Messages: raws(`{"role":"user","content":[` +
			strings.Repeat(`{"image":{}},`, 100) + `{"toolResult":{"content":[{"image":{}}]}}]}`)},
		"openai roles":      {Messages: raws(`{"role":"king","content":"a"}`)},
		"openai content":    {Messages: raws(`{"role":"user","content":null}`)},
		"openai tool_calls": {Messages: raws(question, calls, question)},
		"vllm alternate":    {Messages: raws(question, question)},
		"bedrock alternate": {Messages: raws(question, question)},
		"bedrock bound_thinking": {Model: "claude-fable-5-2", Messages: raws(question,
			`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"x","signature":"s"}}},{"text":"b"}]}`)},
		"bedrock tool_results": {Messages: raws(question, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"n","input":{}}}]}`, question)},
		"openrouter bound_thinking": {Model: "claude-fable-5-2", Messages: raws(question,
			`{"role":"assistant","content":"b","reasoning_details":[{"type":"reasoning.text","text":"x","signature":"s"}]}`)},
		"deepseek reasoning_content": {Messages: raws(question, calls)},
		"mistral nine_characters":    {Messages: raws(question, calls)},
	}
	for _, rule := range Rules() {
		if rule.Source == "" || len(rule.Providers) == 0 {
			t.Errorf("%s has no source or provider", rule.Name)
		}
		found := false
		for _, p := range rule.Providers {
			call, ok := plants[p+" "+rule.Name]
			call.Provider = p
			found = found || ok
			if ok && !slices.ContainsFunc(Refuse(call), func(r Refusal) bool { return r.Rule == rule.Name }) {
				t.Errorf("%s takes what %s refuses", p, rule.Name)
			}
		}
		if !found {
			t.Errorf("%s %v: nothing is planted", rule.Name, rule.Providers)
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
