package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"compactd/internal/events"
	"compactd/internal/summarize/model"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
)

// C5: where a request goes, for every way to write a model's name. A gateway's path
// before that of the API stays.
func TestPaths(t *testing.T) {
	googleCredentials(t)
	const place = "/gate/v1beta1/projects/some-project/locations/us-east5/"
	for _, want := range []struct {
		provider    provider.Name
		model, path string
	}{
		{provider.OpenAI, "gpt-4o", "/gate/chat/completions"},
		{provider.Anthropic, "claude-haiku-4-5", "/gate/v1/messages"},
		{
			provider.AnthropicVertex, "claude-haiku-4-5@20251001",
			"/gate/v1/projects/some-project/locations/us-east5/publishers/anthropic/models/claude-haiku-4-5@20251001:rawPredict",
		},
		{provider.Bedrock, "us.anthropic.claude-haiku-4-5-20251001-v1:0", "/gate/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke"},
		{
			provider.Bedrock, "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc",
			"/gate/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fabc/invoke",
		},
		{provider.Google, "gemini-2.5-flash", "/gate/v1beta/models/gemini-2.5-flash:generateContent"},
		{provider.Google, "models/gemini-2.5-flash", "/gate/v1beta/models/gemini-2.5-flash:generateContent"},
		{provider.Google, "tunedModels/mine", "/gate/v1beta/tunedModels/mine:generateContent"},
		{provider.Vertex, "gemini-2.5-flash", place + "publishers/google/models/gemini-2.5-flash:generateContent"},
		{provider.Vertex, "models/7", place + "models/7:generateContent"},
		{provider.Vertex, "meta/llama-4", place + "publishers/meta/models/llama-4:generateContent"},
		{provider.Vertex, "publishers/meta/models/llama-4", place + "publishers/meta/models/llama-4:generateContent"},
		{provider.Vertex, "projects/p/locations/l/endpoints/7", "/gate/v1beta1/projects/p/locations/l/endpoints/7:generateContent"},
	} {
		var got string
		c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.EscapedPath() }))
		c.Provider, c.Model, c.BaseURL = want.provider, want.model, c.BaseURL+"/gate"
		c.Project, c.Location = "some-project", "us-east5"
		_, _ = open(t, c).Complete(t.Context(), model.Request{User: "q"})
		if got != want.path {
			t.Errorf("%s/%s went to %s, want %s", want.provider, want.model, got, want.path)
		}
	}
}

// C5: answers in the shapes that servers are known for, and in some that only a
// broken one sends.
func TestAnswers(t *testing.T) {
	reply := func(text string, finish model.Finish, in, out int64) model.Reply {
		return model.Reply{Text: text, Model: "m", Finish: finish, Usage: events.SummaryUsage{Input: in, Output: out}}
	}
	for name, a := range map[string]struct {
		dialect summarizetest.Dialect
		body    string
		want    model.Reply
	}{
		"chunks of Mistral": {
			summarizetest.OpenAI,
			`{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"the "},{"type":"text","text":"text"}]},"finish_reason":"stop"}]}`,
			reply("the text", model.FinishStop, 0, 0),
		},
		"text/plain": {
			summarizetest.OpenAI, `{"choices":[{"message":{"content":"t"},"finish_reason":"stop"}]}`,
			reply("t", model.FinishStop, 0, 0),
		},
		"half a surrogate": {
			summarizetest.OpenAI, `{"choices":[{"message":{"content":"a \ud83d b"},"finish_reason":"stop"}]}`,
			reply("a \uFFFD b", model.FinishStop, 0, 0),
		},
		"broken UTF-8": {
			summarizetest.Anthropic, "{\"content\":[{\"type\":\"text\",\"text\":\"a \xff b\"}],\"stop_reason\":\"end_turn\"}",
			reply("a \uFFFD b", model.FinishStop, 0, 0),
		},
		"a field twice": {
			summarizetest.OpenAI, `{"id":"1","id":"2","choices":[{"message":{"content":"t"},"finish_reason":"stop"}]}`,
			reply("t", model.FinishStop, 0, 0),
		},
		"no usage": {
			summarizetest.Google, `{"candidates":[{"content":{"parts":[{"text":"t"}]},"finishReason":"STOP"}],"usageMetadata":null}`,
			reply("t", model.FinishStop, 0, 0),
		},
		"usage of nothing": {
			summarizetest.OpenAI,
			`{"choices":[{"message":{"content":"t"},"finish_reason":"stop"}],"usage":{"prompt_tokens":12.0,"completion_tokens":"x"}}`,
			reply("t", model.FinishStop, 12, 0),
		},
		"no reason to stop": {
			summarizetest.OpenAI, `{"choices":[{"message":{"content":"t","tool_calls":null,"refusal":null},"finish_reason":null}]}`,
			reply("t", model.FinishOther, 0, 0),
		},
		"thoughts": {
			summarizetest.Anthropic,
			`{"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"t"}],` +
				`"stop_reason":"max_tokens","usage":{"input_tokens":3,"cache_read_input_tokens":null,"output_tokens":4}}`,
			reply("t", model.FinishLength, 3, 4),
		},
	} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if name != "text/plain" {
				w.Header().Set("Content-Type", "application/json")
			}
			fmt.Fprint(w, a.body)
		})
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		c := configOf(a.dialect, s.URL)
		got, err := open(t, c).Complete(t.Context(), model.Request{User: "q"})
		if err != nil || got != a.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, a.want)
		}
	}
}

func configOf(d summarizetest.Dialect, url string) provider.Config {
	names := map[summarizetest.Dialect]provider.Name{
		summarizetest.OpenAI: provider.OpenAI, summarizetest.Anthropic: provider.Anthropic, summarizetest.Google: provider.Google,
	}
	return provider.Config{Provider: names[d], Model: "m", Key: "k", BaseURL: url, Attempts: 1}
}

// A prompt with broken UTF-8 is sent, with U+FFFD in its place.
func TestPromptOfBrokenUTF8(t *testing.T) {
	for _, d := range dialects {
		s := summarizetest.Start(t, nil)
		if _, err := open(t, s.Config(d)).Complete(t.Context(), model.Request{System: "r\xff", User: "q\xff"}); err != nil {
			t.Errorf("%s: %v", d, err)
			continue
		}
		if p := s.Prompts()[0]; p.System != "r\uFFFD" || p.User != "q\uFFFD" {
			t.Errorf("%s: %+v", d, p)
		}
	}
}
