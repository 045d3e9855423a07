package events

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		System:   Raw(`"be \ufffd brief"`),
		Tools:    Raw(`[{"name":"x","name":"y"}]`),
		Messages: []Raw{Raw(`{"role":"user","content":"\ufffd"}`), Raw(`{"role":"user", "content":"b"}`)},
		Usage:    &Usage{Input: 10, Output: 2},
		Policy:   Raw(`{"target":0.6}`),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// What is absent and what is null mean the same: unchanged, or none.
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
		if d := cmp.Diff(&Turn{Messages: []Raw{}}, got); d != "" {
			t.Errorf("%s: %s", payload, d)
		}
	}
}

func TestDecodeTurnProblems(t *testing.T) {
	deep := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
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
		{"usage negative", `{"usage":{"input_tokens":-1},` + m + `}`, CodeOutOfRange, "usage.input_tokens"},
		{"no messages", `{}`, CodeMissingField, "messages"},
		{"messages null", `{"messages":null}`, CodeMissingField, "messages"},
		{"version 2", `{"v":2,` + m + `}`, CodeBadVersion, "v"},
		{"version 0", `{"v":0,` + m + `}`, CodeOutOfRange, "v"},
		{"id too long", `{"id":"` + strings.Repeat("x", maxNameBytes+1) + `",` + m + `}`, CodeTooLarge, "id"},
		{"turn too large", `{"messages":["` + strings.Repeat("x", MaxTurnBytes) + `"]}`, CodeTooLarge, ""},
		{"format of another time", `{"format":"gemini",` + m + `}`, CodeUnknownFormat, "format"},
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
	_, err := DecodeTurn([]byte(`{"v":3,"id":1,"turn":-1,"turn":-2,"model":{"name":2},"format":"x","usage":{"prompt_tokens":1.5}}`))
	want := []Code{CodeDuplicateKey, CodeBadVersion, CodeBadType, CodeOutOfRange, CodeBadType, CodeUnknownFormat, CodeMissingField, CodeBadType}
	if d := cmp.Diff(want, codes(err)); d != "" {
		t.Error(d)
	}
	const text = "turn occurs twice; v is 3; this worker speaks 1; id must be a string; turn must be between 1 and 2147483648; " +
		"model.name must be a string; format is none of openai, anthropic, neurolink; messages is required; " +
		"usage.prompt_tokens must be a whole number"
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
		{"as an exponent", `{"input_tokens":1e3}`, &Usage{Input: 1000}, false},
		{"all zero", `{"prompt_tokens":0,"completion_tokens":0}`, nil, false},
		{"null", `null`, nil, false},
		{"unknown", `{"tokens":5,"tokens":"x"}`, nil, true},
		{"empty", `{}`, nil, true},
		{"a number", `5`, nil, true},
		{"a string", `"5"`, nil, true},
		{"an array", `[]`, nil, true},
	} {
		got, err := DecodeTurn([]byte(`{"messages":[],"usage":` + test.usage + `}`))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if d := cmp.Diff(test.want, got.Usage); d != "" || got.UsageUnknown != test.unknown {
			t.Errorf("%s: unknown %v, want %v %s", test.name, got.UsageUnknown, test.unknown, d)
		}
	}
}

func TestUsageProblems(t *testing.T) {
	for usage, want := range map[string]Problem{
		`{"input_tokens":-1}`:                                              {Code: CodeOutOfRange, Field: "usage.input_tokens"},
		`{"output_tokens":1099511627777}`:                                  {Code: CodeOutOfRange, Field: "usage.output_tokens"},
		`{"prompt_tokens":"5"}`:                                            {Code: CodeBadType, Field: "usage.prompt_tokens"},
		`{"completion_tokens":0.5}`:                                        {Code: CodeBadType, Field: "usage.completion_tokens"},
		`{"prompt_tokens":5,"prompt_tokens_details":[]}`:                   {Code: CodeBadType, Field: "usage.prompt_tokens_details"},
		`{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":-1}}`: {Code: CodeOutOfRange, Field: "usage.prompt_tokens_details.cached_tokens"},
		`{"input_tokens":5,"input_tokens_details":{"cached_tokens":"a"}}`:  {Code: CodeBadType, Field: "usage.input_tokens_details.cached_tokens"},
		`{"promptTokenCount":1,"thoughtsTokenCount":-3}`:                   {Code: CodeOutOfRange, Field: "usage.thoughtsTokenCount"},
		`{"input_tokens":1,"input_tokens":2}`:                              {Code: CodeDuplicateKey, Field: "usage.input_tokens"},
	} {
		got, err := DecodeTurn([]byte(`{"messages":[],"usage":` + usage + `}`))
		bad, ok := err.(*Invalid)
		if !ok || len(bad.Problems) != 1 || bad.Problems[0].Code != want.Code || bad.Problems[0].Field != want.Field {
			t.Errorf("%s: got %v, want %v", usage, err, want)
		} else if got.Usage != nil || got.UsageUnknown {
			t.Errorf("%s: got %+v, unknown %v", usage, got.Usage, got.UsageUnknown)
		}
	}
}
