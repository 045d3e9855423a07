package events

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/events/codec"
)

func TestDecodeTurn(t *testing.T) {
	got, err := DecodeTurn([]byte(`{"v":1,"id":"0198","turn":7,"generation":2,"replaces_from":null,
		"model":{"provider":"anthropic","name":"claude","max_output_tokens":8192,"context_window":null,"later":[1]},
		"format":"anthropic","system":"be \ud83d brief","tools":[{"name":"x","name":"y"}],
		"messages":[{"role":"user","content":"\ude00"} , {"role":"user", "content":"b"}],
		"usage":{"input_tokens":10,"output_tokens":2},"policy":{"target":0.6},"unknown":{"a":1,"a":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Turn{
		ID: "0198", Number: 7, Generation: 2,
		Model:    &Model{Provider: "anthropic", Name: "claude", MaxOutputTokens: 8192},
		Format:   Anthropic,
		System:   codec.Raw(`"be \ufffd brief"`),
		Tools:    codec.Raw(`[{"name":"x","name":"y"}]`),
		Messages: []codec.Raw{codec.Raw(`{"role":"user","content":"\ufffd"}`), codec.Raw(`{"role":"user", "content":"b"}`)},
		Usage:    &Usage{Input: 10, Output: 2},
		Policy:   codec.Raw(`{"target":0.6}`),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Absent and null mean the same: unchanged, or none.
func TestDecodeTurnDefaults(t *testing.T) {
	for _, payload := range []string{
		`{"messages":[]}`,
		`{"v":null,"id":null,"turn":null,"generation":null,"replaces_from":null,"model":null,"format":null,
		  "system":null,"tools":null,"messages":[],"usage":null,"policy":null}`,
		`{"usage":{"input_tokens":0,"output_tokens":0},"messages":[]}`,
	} {
		got, err := DecodeTurn([]byte(payload))
		if err != nil {
			t.Errorf("%s: %v", payload, err)
		}
		if d := cmp.Diff(&Turn{Messages: []codec.Raw{}}, got); d != "" {
			t.Errorf("%s: %s", payload, d)
		}
	}
}

func TestDecodeTurnProblems(t *testing.T) {
	deep := strings.Repeat("[", codec.MaxDepth) + strings.Repeat("]", codec.MaxDepth)
	const m = `"messages":[]`
	for _, test := range []struct {
		name, payload string
		code          Code
		field         string
	}{
		{"empty", ``, CodeBadJSON, ""},
		{"an array", `[]`, CodeBadJSON, ""},
		{"null", `null`, CodeBadJSON, ""},
		{"cut off", `{"messages":[{"role":"us`, CodeBadJSON, ""},
		{"broken escape", `{"messages":["\u12"]}`, CodeBadJSON, ""},
		{"control character", "{\"id\":\"a\nb\"," + m + "}", CodeBadJSON, ""},
		{"too deep", `{"messages":[` + deep + `]}`, CodeBadJSON, ""},
		{"far too deep", `{"messages":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, CodeBadJSON, ""},
		{"two objects", `{` + m + `}{}`, CodeTrailingData, ""},
		{"a comma behind", `{` + m + `},`, CodeTrailingData, ""},
		{"a NUL behind", "{" + m + "}\x00", CodeTrailingData, ""},
		{"key twice", `{"turn":1,"turn":1,` + m + `}`, CodeDuplicateKey, "turn"},
		{"key twice, escaped", `{"turn":1,"\u0074urn":1,` + m + `}`, CodeDuplicateKey, "turn"},
		{"unknown key twice", `{"secret text!":1,"secret text!":1,` + m + `}`, CodeDuplicateKey, "a key"},
		{"messages twice", `{` + m + `,` + m + `}`, CodeDuplicateKey, "messages"},
		{"key of model twice", `{"model":{"name":"a","name":"b"},` + m + `}`, CodeDuplicateKey, "model.name"},
		{"id a number", `{"id":1,` + m + `}`, CodeBadType, "id"},
		{"id with a newline", `{"id":"a\nb",` + m + `}`, CodeBadType, "id"},
		{"turn a string", `{"turn":"1",` + m + `}`, CodeBadType, "turn"},
		{"turn a fraction", `{"turn":1.5,` + m + `}`, CodeBadType, "turn"},
		{"format a number", `{"format":1,` + m + `}`, CodeBadType, "format"},
		{"model a string", `{"model":"gpt-4o",` + m + `}`, CodeBadType, "model"},
		{"provider a number", `{"model":{"provider":1},` + m + `}`, CodeBadType, "model.provider"},
		{"system an object", `{"system":{},` + m + `}`, CodeBadType, "system"},
		{"tools an object", `{"tools":{},` + m + `}`, CodeBadType, "tools"},
		{"policy an array", `{"policy":[],` + m + `}`, CodeBadType, "policy"},
		{"messages an object", `{"messages":{}}`, CodeBadType, "messages"},
		{"turn zero", `{"turn":0,` + m + `}`, CodeOutOfRange, "turn"},
		{"turn negative", `{"turn":-1,` + m + `}`, CodeOutOfRange, "turn"},
		{"turn beyond int64", `{"turn":1e30,` + m + `}`, CodeOutOfRange, "turn"},
		{"turn beyond float64", `{"turn":1e400,` + m + `}`, CodeOutOfRange, "turn"},
		{"generation negative", `{"generation":-1,` + m + `}`, CodeOutOfRange, "generation"},
		{"replaces_from zero", `{"replaces_from":0,` + m + `}`, CodeOutOfRange, "replaces_from"},
		{"turn other than replaces_from", `{"turn":3,"replaces_from":2,` + m + `}`, CodeOutOfRange, "turn"},
		{"window negative", `{"model":{"context_window":-1},` + m + `}`, CodeOutOfRange, "model.context_window"},
		{"reserve as large as the window", `{"model":{"context_window":8,"max_output_tokens":8},` + m + `}`, CodeOutOfRange, "model.max_output_tokens"},
		{"no messages", `{}`, CodeMissingField, "messages"},
		{"messages null", `{"messages":null}`, CodeMissingField, "messages"},
		{"version 3", `{"v":3,` + m + `}`, CodeBadVersion, "v"},
		{"version 2 without a base", `{"v":2,` + m + `}`, CodeBadVersion, "v"},
		{"version 2 with a base that is null", `{"v":2,"expect":null,"forked_from":null,` + m + `}`, CodeBadVersion, "v"},
		{"base without a digest", `{"v":2,"expect":{"turn":1},` + m + `}`, CodeMissingField, "expect.digest"},
		{"base with a digest too short", `{"v":2,"expect":{"turn":1,"digest":"00"},` + m + `}`, CodeBadType, "expect.digest"},
		{"base a number", `{"v":2,"expect":1,` + m + `}`, CodeBadType, "expect"},
		{"base with a key twice", `{"v":2,"expect":{"turn":1,"turn":1,"digest":"` + strings.Repeat("0", 32) + `"},` + m + `}`, CodeDuplicateKey, "expect.turn"},
		{"fork of no session", `{"v":2,"forked_from":{"turn":1},` + m + `}`, CodeBadID, "forked_from.session"},
		{"version 0", `{"v":0,` + m + `}`, CodeOutOfRange, "v"},
		{"id too long", `{"id":"` + strings.Repeat("x", maxNameBytes+1) + `",` + m + `}`, CodeTooLarge, "id"},
		{"turn too large", `{"messages":["` + strings.Repeat("x", MaxTurnBytes) + `"]}`, CodeTooLarge, ""},
		{"format of another time", `{"format":"esperanto",` + m + `}`, CodeUnknownFormat, "format"},
	} {
		_, err := DecodeTurn([]byte(test.payload))
		bad, ok := err.(*Invalid)
		if !ok {
			t.Errorf("%s: got %v, want code %s", test.name, err, test.code)
			continue
		}
		if p := bad.Problems[0]; len(bad.Problems) != 1 || p.Code != test.code || p.Field != test.field || p.Text == "" {
			t.Errorf("%s: got %+v, want one %s at %q", test.name, bad.Problems, test.code, test.field)
		}
	}
}

func TestDecodeTurnListsEveryProblem(t *testing.T) {
	_, err := DecodeTurn([]byte(`{"v":3,"id":1,"turn":-1,"turn":-2,"model":{"name":2},"format":"x"}`))
	want := []Code{CodeDuplicateKey, CodeBadVersion, CodeBadType, CodeOutOfRange, CodeBadType, CodeUnknownFormat, CodeMissingField}
	if d := cmp.Diff(want, codes(err)); d != "" {
		t.Error(d)
	}
	const text = "turn occurs twice; v is 3; this worker speaks 1; id must be a string; turn must be between 1 and 2147483648; " +
		"model.name must be a string; format is none of openai, anthropic, neurolink, openai-responses, gemini, bedrock, ai-sdk; messages is required"
	if d := cmp.Diff(text, err.Error()); d != "" {
		t.Error(d)
	}
}

// A hostile event cannot make a worker say more than a page.
func TestProblemsAreBounded(t *testing.T) {
	_, err := DecodeTurn([]byte(`{` + strings.Repeat(`"a":1,`, 10_000) + `"messages":[]}`))
	if got := len(codes(err)); got != maxProblems {
		t.Errorf("got %d problems, want %d", got, maxProblems)
	}
}

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		name, usage string
		want        *Usage
		unknown     bool
	}{
		{
			"Anthropic", `{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":4,"service_tier":"standard"}`,
			&Usage{Input: 10, CacheCreate: 20, CacheRead: 300, Output: 4}, false,
		},
		{"Anthropic without cache", `{"input_tokens":10,"cache_read_input_tokens":null,"output_tokens":4}`, &Usage{Input: 10, Output: 4}, false},
		{
			"OpenAI chat", `{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,"prompt_tokens_details":{"cached_tokens":60,"audio_tokens":0}}`,
			&Usage{Input: 40, CacheRead: 60, Output: 7}, false,
		},
		{"OpenAI chat without details", `{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":null}`, &Usage{Input: 100, Output: 7}, false},
		{
			"OpenAI responses", `{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":7}`,
			&Usage{Input: 40, CacheRead: 60, Output: 7}, false,
		},
		{
			"Gemini", `{"promptTokenCount":100,"candidatesTokenCount":5,"thoughtsTokenCount":6,"cachedContentTokenCount":70,"totalTokenCount":111}`,
			&Usage{Input: 30, CacheRead: 70, Output: 11}, false,
		},
		{
			"a proxy that counts the cache apart", `{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":60}}`,
			&Usage{Input: 10, CacheRead: 60, Output: 1}, false,
		},
		{
			"AI SDK 5", `{"inputTokens":100,"outputTokens":7,"totalTokens":107,"reasoningTokens":2,"cachedInputTokens":60}`,
			&Usage{Input: 40, CacheRead: 60, Output: 7}, false,
		},
		{
			"AI SDK 6", `{"inputTokens":100,"inputTokenDetails":{"noCacheTokens":30,"cacheReadTokens":60,"cacheWriteTokens":10},"outputTokens":7,
			  "outputTokenDetails":{"textTokens":5,"reasoningTokens":2},"totalTokens":107,"raw":{"input_tokens":30}}`,
			&Usage{Input: 30, CacheRead: 60, CacheCreate: 10, Output: 7}, false,
		},
		{
			"AI SDK 6, of a provider", `{"inputTokens":{"total":100,"noCache":30,"cacheRead":60,"cacheWrite":10},"outputTokens":{"total":7,"text":5,"reasoning":2}}`,
			&Usage{Input: 30, CacheRead: 60, CacheCreate: 10, Output: 7}, false,
		},
		{
			"AI SDK 6, of a provider, no total", `{"inputTokens":{"noCache":30,"cacheRead":60},"outputTokens":{"text":5}}`,
			&Usage{Input: 30, CacheRead: 60, Output: 0}, false,
		},
		{"AI SDK 4", `{"promptTokens":100,"completionTokens":7,"totalTokens":107}`, &Usage{Input: 100, Output: 7}, false},
		{"AI SDK without counts", `{"inputTokenDetails":{},"outputTokenDetails":{}}`, nil, false},
		{
			"OpenAI Agents in JavaScript", `{"requests":1,"inputTokens":100,"outputTokens":7,"totalTokens":107,
			  "inputTokensDetails":[{"cached_tokens":60}],"outputTokensDetails":[{"reasoning_tokens":2}]}`,
			&Usage{Input: 40, CacheRead: 60, Output: 7}, false,
		},
		{
			"OpenAI Agents in JavaScript, of several calls", `{"requests":2,"inputTokens":300,"outputTokens":9,"totalTokens":309,
			  "inputTokensDetails":[{"cached_tokens":0},{"cached_tokens":60}],"requestUsageEntries":[
			  {"inputTokens":200,"outputTokens":2,"totalTokens":202,"inputTokensDetails":{"cached_tokens":0}},
			  {"inputTokens":100,"outputTokens":7,"totalTokens":107,"inputTokensDetails":{"cached_tokens":60}}]}`,
			&Usage{Input: 40, CacheRead: 60, Output: 7}, false,
		},
		{
			"OpenAI Agents in Python", `{"requests":1,"input_tokens":100,"input_tokens_details":[{"cached_tokens":60}],"output_tokens":7,
			  "output_tokens_details":[{"reasoning_tokens":0}],"total_tokens":107,"request_usage_entries":[]}`,
			&Usage{Input: 40, CacheRead: 60, Output: 7}, false,
		},
		{
			"OpenAI Agents in Python, of several calls", `{"requests":2,"input_tokens":300,"output_tokens":9,"total_tokens":309,
			  "input_tokens_details":{"cached_tokens":60},"request_usage_entries":[{"input_tokens":200,"output_tokens":2},
			  {"input_tokens":100,"output_tokens":7,"input_tokens_details":{"cached_tokens":60}}]}`,
			&Usage{Input: 40, CacheRead: 60, Output: 7}, false,
		},
		{"OpenAI Agents, a sum of several calls", `{"requests":2,"inputTokens":300,"outputTokens":9,"totalTokens":309}`, nil, true},
		{
			"pi", `{"input":30,"output":7,"cacheRead":60,"cacheWrite":10,"totalTokens":107,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}}`,
			&Usage{Input: 30, CacheRead: 60, CacheCreate: 10, Output: 7}, false,
		},
		{
			"Bedrock", `{"inputTokens":30,"outputTokens":7,"totalTokens":107,"cacheReadInputTokens":60,"cacheWriteInputTokens":10,"serverToolUsage":{}}`,
			&Usage{Input: 30, CacheRead: 60, CacheCreate: 10, Output: 7}, false,
		},
		{"Bedrock without cache", `{"inputTokens":30,"outputTokens":7,"totalTokens":37}`, &Usage{Input: 30, Output: 7}, false},
		{
			"Claude Agent SDK", `{"inputTokens":30,"outputTokens":7,"cacheReadInputTokens":60,"cacheCreationInputTokens":10,"webSearchRequests":0,"costUSD":0.1}`,
			&Usage{Input: 30, CacheRead: 60, CacheCreate: 10, Output: 7}, false,
		},
		{
			"LangChain", `{"input_tokens":100,"output_tokens":7,"total_tokens":107,"input_token_details":{"cache_read":60,"cache_creation":10}}`,
			&Usage{Input: 30, CacheRead: 60, CacheCreate: 10, Output: 7}, false,
		},
		{
			"Gemini in Python", `{"prompt_token_count":100,"candidates_token_count":5,"thoughts_token_count":6,"cached_content_token_count":70,"total_token_count":111}`,
			&Usage{Input: 30, CacheRead: 70, Output: 11}, false,
		},
		{"as an exponent", `{"input_tokens":1e3}`, &Usage{Input: 1000}, false},
		{"all zero", `{"prompt_tokens":0,"completion_tokens":0}`, nil, false},
		{"null", `null`, nil, false},
		{"unknown", `{"tokens":5,"tokens":"x"}`, nil, true},
		{"empty", `{}`, nil, false},
		{"a number", `5`, nil, true},
		{"a string", `"5"`, nil, true},
		{"an array", `[]`, nil, true},
	} {
		got, err := DecodeTurn([]byte(`{"messages":[],"usage":` + test.usage + `}`))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if d := cmp.Diff(test.want, got.Usage); d != "" || (got.UsageProblem != "") != test.unknown {
			t.Errorf("%s: problem %q, want one: %v %s", test.name, got.UsageProblem, test.unknown, d)
		}
	}
}

// A usage that cannot be read costs its turn nothing: what is wrong with it is reported
// beside the turn, without any of its values.
func TestUsageProblems(t *testing.T) {
	for usage, want := range map[string]string{
		`{"input_tokens":-1}`:                                              "usage.input_tokens must be between 0 and 1099511627776",
		`{"output_tokens":1099511627777}`:                                  "usage.output_tokens must be between 0 and 1099511627776",
		`{"prompt_tokens":"5"}`:                                            "usage.prompt_tokens must be a whole number",
		`{"completion_tokens":0.5}`:                                        "usage.completion_tokens must be a whole number",
		`{"prompt_tokens":5,"prompt_tokens_details":7}`:                    "usage.prompt_tokens_details must be an object",
		`{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":-1}}`: "usage.prompt_tokens_details.cached_tokens must be between 0 and 1099511627776",
		`{"input_tokens":5,"input_tokens_details":{"cached_tokens":"a"}}`:  "usage.input_tokens_details.cached_tokens must be a whole number",
		`{"promptTokenCount":1,"thoughtsTokenCount":-3}`:                   "usage.thoughtsTokenCount must be between 0 and 1099511627776",
		`{"input_tokens":1,"input_tokens":2}`:                              "usage.input_tokens occurs twice",
		`{"inputTokens":{"total":"x"}}`:                                    "usage.inputTokens.total must be a whole number",
		`{"requests":3,"input_tokens":2}`:                                  "usage sums up several calls, and does not list them: the tokens of the last call are meant",
		`{"requests":2,"requestUsageEntries":7,"inputTokens":2}`:           "usage.requestUsageEntries must be an array",
		`{"requests":2,"requestUsageEntries":[7],"inputTokens":2}`:         "usage.requestUsageEntries must be an array of objects",
		`{"tokens":5,"secret":1,"another secret":2}`:                       "usage has a shape of no known provider, with a key, tokens",
		`{"token1":1,"token2":1,"token3":1,"token4":1,"token5":1,"token6":1,"token7":1,"token8":1,"token9":1}`: "usage has a shape of no known provider, " +
			"with token1, token2, token3, token4, token5, token6, token7, token8, …",
		`[]`: "usage is no object",
	} {
		got, err := DecodeTurn([]byte(`{"messages":[],"usage":` + usage + `}`))
		if err != nil || got.Usage != nil || got.UsageProblem != want {
			t.Errorf("%s: got %+v, %q, %v, want %q", usage, got.Usage, got.UsageProblem, err, want)
		}
	}
}
