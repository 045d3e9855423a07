package validate

import (
	"slices"
	"strings"
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/traits"
)

// Each rule that a provider has beyond its dialect finds the error that is planted for it, and
// nothing else does, in each dialect of the rule.
func TestDemanded(t *testing.T) {
	const (
		user      = `{"role":"user","content":"a"}`
		assistant = `{"role":"assistant","content":"b"}`
		call      = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"n","arguments":"{}"}}]}`
		result    = `{"role":"tool","tool_call_id":"call_1","content":"x"}`
		aCall     = `{"role":"assistant","content":[{"type":"tool-call","toolCallId":"call_1","toolName":"n","input":{}}]}`
		aResult   = `{"role":"tool","content":[{"type":"tool-result","toolCallId":"call_1","toolName":"n","output":{"type":"text","value":"x"}}]}`
		nCall     = `{"role":"tool_call","content":"","tool":"n","toolCallId":"call_1"}`
		nResult   = `{"role":"tool_result","content":"x","tool":"n","toolCallId":"call_1"}`
		bUser     = `{"role":"user","content":[{"text":"a"}]}`
		bMark     = `{"cachePoint":{"type":"default"}}`
		cMark     = `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`
		aMark     = `{"type":"text","text":"a","providerOptions":{"anthropic":{"cacheControl":{"type":"ephemeral"}}}}`
	)
	plants := map[string]struct {
		provider, model string
		sent            bool
		system          string
		history         []string
	}{
		"openai roles_alternate":           {provider: "mistral", history: []string{user, user}},
		"openai-responses roles_alternate": {provider: "ollama", history: []string{user, user}},
		"ai-sdk roles_alternate":           {provider: "perplexity", history: []string{user, assistant, assistant}},
		"neurolink roles_alternate":        {provider: "ollama", history: []string{user, user}},
		"openai user_after_tool":           {provider: "mistral", history: []string{user, strings.ReplaceAll(call, "call_1", "call00001"), strings.ReplaceAll(result, "call_1", "call00001"), user}},
		"ai-sdk user_after_tool":           {provider: "mistral", history: []string{user, strings.ReplaceAll(aCall, "call_1", "call00001"), strings.ReplaceAll(aResult, "call_1", "call00001"), user}},
		"neurolink user_after_tool":        {provider: "mistral", history: []string{user, strings.ReplaceAll(nCall, "call_1", "call00001"), strings.ReplaceAll(nResult, "call_1", "call00001"), user}},
		"openai call_id":                   {provider: "mistral", history: []string{user, call, result}},
		"ai-sdk call_id":                   {provider: "mistral", history: []string{user, aCall, aResult}},
		"neurolink call_id":                {provider: "mistral", history: []string{user, nCall, nResult}},
		"ai-sdk duplicate_call_id":         {provider: "anthropic", history: []string{user, aCall, aResult, aCall, aResult}},
		"neurolink duplicate_call_id":      {provider: "bedrock", history: []string{user, nCall, nResult, assistant, nCall, nResult}},
		"openai reasoning_absent":          {provider: "deepseek", history: []string{user, call, result}},
		"openai reasoning_refused":         {provider: "groq", history: []string{user, `{"role":"assistant","content":"b","reasoning_content":"c"}`}},
		"anthropic cache_marks":            {system: `[` + cMark + `]`, history: []string{`{"role":"user","content":[` + cMark + "," + cMark + "," + cMark + "," + cMark + `]}`}},
		"openai cache_marks":               {history: []string{`{"role":"user","content":[` + cMark + "," + cMark + "," + cMark + "," + cMark + "," + cMark + `]}`}},
		"ai-sdk cache_marks":               {history: []string{`{"role":"user","content":[` + aMark + "," + aMark + "," + aMark + "," + aMark + "," + aMark + `]}`}},
		"bedrock cache_marks":              {history: []string{`{"role":"user","content":[{"text":"a"},` + bMark + "," + bMark + "," + bMark + "," + bMark + "," + bMark + `]}`}},
		"anthropic final_thinking":         {sent: true, history: []string{user, `{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"thinking","thinking":"x","signature":"s"}]}`, user}},
		"bedrock final_thinking":           {sent: true, history: []string{bUser, `{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"x"}}}]}`, bUser}},
		"anthropic prefill":                {sent: true, model: "claude-opus-5", history: []string{user, assistant}},
		"bedrock prefill":                  {sent: true, model: "claude-opus-5", history: []string{bUser, `{"role":"assistant","content":[{"text":"b"}]}`}},
		"openai prefill":                   {sent: true, provider: "perplexity", history: []string{user, assistant}},
		"ai-sdk prefill":                   {sent: true, provider: "anthropic", history: []string{user, assistant}},
		"neurolink prefill":                {sent: true, provider: "perplexity", history: []string{user, assistant}},
		"gemini prefill":                   {sent: true, history: []string{`{"role":"user","parts":[{"text":"a"}]}`, `{"role":"model","parts":[{"text":"b"}]}`}},
		"bedrock tools_absent": {sent: true, history: []string{
			bUser, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"n","input":{}}}]}`,
			`{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[]}}]}`,
		}},
	}
	for _, r := range demanded {
		for _, dialect := range r.dialects {
			name := dialect + " " + r.name
			p, ok := plants[name]
			if !ok {
				t.Errorf("%s: nothing is planted", name)
				continue
			}
			in := Call{Format: dialect, Demands: traits.DemandsOf(dialect, p.provider, p.model), Messages: raws(p.history), Sent: p.sent}
			if p.system != "" {
				in.System = codec.Raw(p.system)
			}
			got := Check(in)
			if len(got) == 0 || slices.ContainsFunc(got, func(v Violation) bool { return v.Rule != r.name || v.Index < 0 }) {
				t.Errorf("%s: %v", name, got)
			}
			if got := Messages(dialect, in.Messages); len(got) > 0 && r.name != "cache_marks" {
				t.Errorf("%s: of any provider: %v", name, got)
			}
		}
	}
}

// A history that is sent has no open calls, which one that is kept may have at its end.
func TestSentHasNoOpenCalls(t *testing.T) {
	for f, histories := range valid {
		for _, name := range []string{"calls open at the end", "some results at the end", "some responses at the end"} {
			history, ok := histories[name]
			if !ok {
				continue
			}
			got := Check(Call{Format: f, Messages: raws(history), Sent: true, Tools: codec.Raw(`[{}]`)})
			if !slices.ContainsFunc(got, func(v Violation) bool { return v.Rule == "call_answered" }) {
				t.Errorf("%s, %s: %v", f, name, got)
			}
		}
	}
}
