package dialect_test

import (
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

func TestReadOpenAI(t *testing.T) {
	const call = `{"id":"c1","type":"function","function":{"name":"read","arguments":"{ \"p\":1,\"p\":\"\\ud83d\"}"}}`
	checkRead(t, OpenAI, []readCase{
		{"system", `{"role":"system","content":"a"}`, Message{Role: RoleSystem, Parts: []Part{{Text: "a"}}}},
		{"developer", `{"role":"developer","content":"a"}`, Message{Role: RoleSystem, Parts: []Part{{Text: "a"}}}},
		{"user", `{"role":"user","content":"","name":"bob"}`, Message{Role: RoleUser, Parts: []Part{{}}}},
		{
			"parts",
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{}},{"type":"input_audio"},{"type":"file"},{"type":"new"},"bare"]}`,
			Message{Role: RoleUser, Parts: []Part{
				{Kind: PartText, Text: "a", Raw: codec.Raw(`{"type":"text","text":"a"}`)},
				{Kind: PartImage, Raw: codec.Raw(`{"type":"image_url","image_url":{}}`)},
				{Kind: PartImage, Raw: codec.Raw(`{"type":"input_audio"}`)},
				{Kind: PartImage, Papers: 1, Raw: codec.Raw(`{"type":"file"}`)},
				{Kind: PartOther, Raw: codec.Raw(`{"type":"new"}`)},
				{Kind: PartOther, Raw: codec.Raw(`"bare"`)},
			}},
		},
		{
			"refusal", `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`,
			Message{Role: RoleAssistant, Parts: []Part{{Text: "no", Raw: codec.Raw(`{"type":"refusal","refusal":"no"}`)}}},
		},
		{"assistant without content", `{"role":"assistant","refusal":null}`, Message{Role: RoleAssistant}},
		{
			"a refusal beside no content", `{"role":"assistant","content":null,"refusal":"no"}`,
			Message{Role: RoleAssistant, Parts: []Part{{Kind: PartOther, Raw: codec.Raw(`"no"`), Locked: true, Aside: true}}},
		},
		{
			"calls follow the content",
			`{"role":"assistant","tool_calls":[ ` + call + ` ,{"id":"c2","type":"function","function":{"name":"ls","arguments":"{\"broken\":"}}],"content":"a"}`,
			Message{Role: RoleAssistant, Parts: []Part{
				{Text: "a"},
				{Kind: PartCall, CallID: "c1", Tool: "read", Args: codec.Raw(`{ "p":1,"p":"\ufffd"}`), Raw: codec.Raw(call)},
				{Kind: PartCall, CallID: "c2", Tool: "ls", Args: codec.Raw(`"{\"broken\":"`), Raw: codec.Raw(`{"id":"c2","type":"function","function":{"name":"ls","arguments":"{\"broken\":"}}`)},
			}},
		},
		{
			"null and empty content beside calls", `{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"py","input":"x = 1"}},{}]}`,
			Message{Role: RoleAssistant, Parts: []Part{
				{Kind: PartCall, CallID: "c1", Tool: "py", Args: codec.Raw(`"x = 1"`), Raw: codec.Raw(`{"id":"c1","type":"custom","custom":{"name":"py","input":"x = 1"}}`)},
				{Kind: PartCall, NoID: true, Raw: codec.Raw(`{}`)},
			}},
		},
		{
			"arguments as an object", `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"n","arguments":{"a":1}}}]}`,
			Message{Role: RoleAssistant, Parts: []Part{{Kind: PartCall, CallID: "c1", Tool: "n", Args: codec.Raw(`{"a":1}`), Raw: codec.Raw(`{"id":"c1","function":{"name":"n","arguments":{"a":1}}}`)}}},
		},
		{"calls null", `{"role":"assistant","content":"a","tool_calls":null}`, Message{Role: RoleAssistant, Parts: []Part{{Text: "a"}}}},
		{
			"tool", `{"role":"tool","tool_call_id":"c1","name":"read","content":"ok"}`,
			Message{Role: RoleTool, Parts: []Part{{Kind: PartResult, CallID: "c1", Tool: "read", Text: "ok"}}},
		},
		{
			"tool with parts", `{"role":"tool","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_call_id":"c1"}`,
			Message{Role: RoleTool, Parts: []Part{{Kind: PartResult, CallID: "c1", Text: "a\nb", Raw: codec.Raw(`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`)}}},
		},
		{
			"function_call", `{"role":"assistant","content":null,"function_call":{"name":"read","arguments":"{}"}}`,
			Message{Role: RoleAssistant, Parts: []Part{{Kind: PartCall, Tool: "read", Args: codec.Raw(`{}`), Raw: codec.Raw(`{"name":"read","arguments":"{}"}`)}}},
		},
		{"function", `{"role":"function","name":"read","content":"ok"}`, Message{Role: RoleTool, Parts: []Part{{Kind: PartResult, Tool: "read", Text: "ok"}}}},
	})
	checkReadProblems(t, OpenAI, map[string]error{
		`{"role":"assistant","content":1}`:                         dialect.ErrNoContent,
		`{"role":"assistant","content":{}}`:                        dialect.ErrNoContent,
		`{"role":"tool","tool_call_id":"c"}`:                       dialect.ErrNoContent,
		`{"role":"system","content":null}`:                         dialect.ErrNoContent,
		`{"role":"assistant","content":null,"tool_calls":{}}`:      dialect.ErrBadCalls,
		`{"role":"assistant","content":null,"tool_calls":["c"]}`:   dialect.ErrBadCalls,
		`{"role":"assistant","content":null,"tool_calls":[{"a"}]}`: dialect.ErrNoMessage,
	})
}

func TestWriteOpenAI(t *testing.T) {
	const calls = `{"id":"m","role":"assistant","content":null,"tool_calls":[` +
		`{"id":"c1","type":"function","function":{"name":"a","arguments":"{}"}},` +
		` {"id":"c2" ,"type":"function","function":{"name":"b","arguments":"{\"x\": 1}"}}],"audio":null}`
	checkWrite(t, OpenAI, []writeCase{
		{
			"tool result", `{"role":"tool","content":"long","tool_call_id":"c1","x":1.0}`, func(m *Message) { m.SetText(0, "[cleared]") },
			`{"role":"tool","content":"[cleared]","tool_call_id":"c1","x":1.0}`,
		},
		{
			"tool result with parts", `{"role":"tool","content":[{"type":"text","text":"a"}],"tool_call_id":"c1"}`, func(m *Message) { m.SetText(0, "b") },
			`{"role":"tool","content":"b","tool_call_id":"c1"}`,
		},
		{
			"tool result left alone", `{"role":"tool","content":[{"type":"text","text":"a"} ],"tool_call_id":"c1"}`, func(*Message) {},
			`{"role":"tool","content":[{"type":"text","text":"a"} ],"tool_call_id":"c1"}`,
		},
		{
			"a call removed", calls, func(m *Message) { m.Parts = m.Parts[1:] },
			`{"id":"m","role":"assistant","content":null,"tool_calls":[{"id":"c2" ,"type":"function","function":{"name":"b","arguments":"{\"x\": 1}"}}],"audio":null}`,
		},
		{
			"text for calls", calls, func(m *Message) { m.Parts = []Part{{Text: "done"}} },
			`{"id":"m","role":"assistant","content":"done","audio":null}`,
		},
		{
			"a call added", `{"role":"assistant","content":"a"}`, func(m *Message) { m.Parts = append(m.Parts, Part{Kind: PartCall, CallID: "c", Tool: "n"}) },
			`{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
		},
		{
			"empty content stays", `{"role":"assistant","content":"","tool_calls":[{"id":"c"}]}`, func(*Message) {},
			`{"role":"assistant","content":"","tool_calls":[{"id":"c"}]}`,
		},
		{"absent content stays", `{"role":"assistant","tool_calls":[{"id":"c"}]}`, func(*Message) {}, `{"role":"assistant","tool_calls":[{"id":"c"}]}`},
		{
			"content removed", `{"role":"assistant","content":"a","tool_calls":[{"id":"c"}]}`, func(m *Message) { m.Parts = m.Parts[1:] },
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]}`,
		},
		{
			"refusal", `{"role":"assistant","content":[{"type":"refusal","refusal":"no"},{"type":"text","text":"a"}]}`, func(m *Message) { m.SetText(0, "never"); m.SetText(1, "b") },
			`{"role":"assistant","content":[{"type":"refusal","refusal":"never"},{"type":"text","text":"b"}]}`,
		},
		{"no parts", `{"role":"user","content":[]}`, func(*Message) {}, `{"role":"user","content":[]}`},
		{
			"texts merged", `{"role":"user","content":"a"}`, func(m *Message) { m.Parts = append(m.Parts, Part{Text: "b"}) },
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
		},
		{
			"function_call kept", `{"role":"assistant","content":"a","function_call":{"name":"n","arguments":"{}"}}`, func(m *Message) { m.SetText(0, "b") },
			`{"role":"assistant","content":"b","function_call":{"name":"n","arguments":"{}"}}`,
		},
		{
			"function_call removed", `{"role":"assistant","content":"a","function_call":{"name":"n","arguments":"{}"}}`, func(m *Message) { m.Parts = m.Parts[:1] },
			`{"role":"assistant","content":"a"}`,
		},

		{
			"new result", "", func(m *Message) {
				*m = Message{Role: RoleTool, Parts: []Part{{Kind: PartResult, CallID: "c", Text: "gone"}}}
			},
			`{"role":"tool","tool_call_id":"c","content":"gone"}`,
		},
		{"new calls", "", func(m *Message) {
			*m = Message{Role: RoleAssistant, Parts: []Part{
				{Kind: PartCall, CallID: "c", Tool: "n"},
				{Kind: PartCall, CallID: "d", Tool: "n", Args: codec.Raw(`{"a":"b"}`)},
				{Kind: PartCall, CallID: "e", Tool: "n", Args: codec.Raw(`"{broken"`)},
			}}
		}, `{"role":"assistant","content":null,"tool_calls":[` +
			`{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}},` +
			`{"id":"d","type":"function","function":{"name":"n","arguments":"{\"a\":\"b\"}"}},` +
			`{"id":"e","type":"function","function":{"name":"n","arguments":"{broken"}}]}`},
		{"new text", "", func(m *Message) { *m = Message{Role: RoleSystem, Parts: []Part{{Text: "a"}}} }, `{"role":"system","content":"a"}`},
	})
	checkWriteErrors(t, OpenAI, map[string]Message{
		"no result":           {Role: RoleTool},
		"two results":         {Role: RoleTool, Parts: []Part{{Kind: PartResult}, {Kind: PartResult}}},
		"a result of a user":  {Role: RoleUser, Parts: []Part{{Kind: PartResult}}},
		"a call of a user":    {Role: RoleUser, Parts: []Part{{Kind: PartCall}}},
		"an image of no role": {Role: RoleUser, Parts: []Part{{Kind: PartImage}}},
	})
}
