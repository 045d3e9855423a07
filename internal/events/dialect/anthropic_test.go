package dialect_test

import (
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

func TestReadAnthropic(t *testing.T) {
	checkRead(t, Anthropic, []readCase{
		{"string", `{"role":"user","content":"h\u00e9"}`, Message{Role: RoleUser, Parts: []Part{{Text: "hé"}}}},
		{"empty string", `{"role":"user","content":""}`, Message{Role: RoleUser, Parts: []Part{{}}}},
		{"content before role", `{"content":"a", "role":"assistant"}`, Message{Role: RoleAssistant, Parts: []Part{{Text: "a"}}}},
		{"no blocks", `{"role":"assistant","content":[]}`, Message{Role: RoleAssistant}},
		{"system", `{"role":"system","content":"a"}`, Message{Role: RoleSystem, Parts: []Part{{Text: "a"}}}},
		{"the last duplicate counts", `{"role":"king","role":"user","content":["x"],"content":"a"}`, Message{Role: RoleUser, Parts: []Part{{Text: "a"}}}},
		{
			"assistant",
			`{"role":"assistant","content":[ {"type":"thinking","thinking":"hm","signature":"sig"},` +
				`{"type":"redacted_thinking","data":"x"} ,{"type":"text","text":"a","citations":[]},` +
				`{"type":"tool_use","id":"t1","name":"read","input":{ "p" : 1,"p":2}}]}`,
			Message{Role: RoleAssistant, Parts: []Part{
				{Kind: PartThinking, Text: "hm", Raw: codec.Raw(`{"type":"thinking","thinking":"hm","signature":"sig"}`)},
				{Kind: PartThinking, Raw: codec.Raw(`{"type":"redacted_thinking","data":"x"}`)},
				{Kind: PartText, Text: "a", Raw: codec.Raw(`{"type":"text","text":"a","citations":[]}`)},
				{Kind: PartCall, CallID: "t1", Tool: "read", Args: codec.Raw(`{ "p" : 1,"p":2}`), Raw: codec.Raw(`{"type":"tool_use","id":"t1","name":"read","input":{ "p" : 1,"p":2}}`)},
			}},
		},
		{
			"results",
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"},` +
				`{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"a"},` +
				`{"type":"image","source":{}},{"type":"document"},{"type":"text","text":"b"}]},` +
				`{"type":"tool_result","tool_use_id":"t3"}]}`,
			Message{Role: RoleUser, Parts: []Part{
				{Kind: PartResult, CallID: "t1", Text: "ok", Raw: codec.Raw(`{"type":"tool_result","tool_use_id":"t1","content":"ok"}`)},
				{
					Kind: PartResult, CallID: "t2", Text: "a\nb", Images: 2, Papers: 1, Failed: true,
					Raw: codec.Raw(`{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"a"},` +
						`{"type":"image","source":{}},{"type":"document"},{"type":"text","text":"b"}]}`),
				},
				{Kind: PartResult, CallID: "t3", Raw: codec.Raw(`{"type":"tool_result","tool_use_id":"t3"}`)},
			}},
		},
		{
			"a result of another shape counts with its JSON",
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[` +
				`{"type":"text","text":"a"},{"type":"search_result","title":"x"}]},` +
				`{"type":"tool_result","tool_use_id":"t2","content":{"a":1}}]}`,
			Message{Role: RoleUser, Parts: []Part{
				{
					Kind: PartResult, CallID: "t1", Text: "a\n" + `{"type":"search_result","title":"x"}`,
					Raw: codec.Raw(`{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a"},{"type":"search_result","title":"x"}]}`),
				},
				{Kind: PartResult, CallID: "t2", Text: `{"a":1}`, Raw: codec.Raw(`{"type":"tool_result","tool_use_id":"t2","content":{"a":1}}`)},
			}},
		},
		{
			"a result within a result is not one",
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"tool_result","content":"a"}]}]}`,
			Message{Role: RoleUser, Parts: []Part{
				{Kind: PartResult, CallID: "t1", Text: `{"type":"tool_result","content":"a"}`, Raw: codec.Raw(`{"type":"tool_result","tool_use_id":"t1","content":[{"type":"tool_result","content":"a"}]}`)},
			}},
		},
		{
			"unknown blocks stay",
			`{"role":"user","content":[{"type":"image","source":{}},{"type":"server_tool_use","id":"x"},{"text":"no type"},{"type":"text","text":7},"bare",5,null]}`,
			Message{Role: RoleUser, Parts: []Part{
				{Kind: PartImage, Raw: codec.Raw(`{"type":"image","source":{}}`)},
				{Kind: PartOther, Raw: codec.Raw(`{"type":"server_tool_use","id":"x"}`), Hosted: dialect.Hosted{Kind: dialect.HostedCall, ID: dialect.CallKeyOf("x")}},
				{Kind: PartOther, Raw: codec.Raw(`{"text":"no type"}`)},
				{Kind: PartOther, Raw: codec.Raw(`{"type":"text","text":7}`)},
				{Kind: PartOther, Raw: codec.Raw(`"bare"`)},
				{Kind: PartOther, Raw: codec.Raw(`5`)},
				{Kind: PartOther, Raw: codec.Raw(`null`)},
			}},
		},
	})
	checkReadProblems(t, Anthropic, map[string]error{
		`{"role":"tool","content":"a"}`:       dialect.ErrNoRole,
		`{"role":"user","content":{"a":1}}`:   dialect.ErrNoContent,
		`{"role":"assistant","content":null}`: dialect.ErrNoContent,
		`{"role":"user","content":[{"a"}]}`:   dialect.ErrNoMessage,
	})
}

func TestWriteAnthropic(t *testing.T) {
	const results = `{"id":"m1","role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[` +
		`{"type":"text","text":"long"},{"type":"image"}],"cache_control":{"type":"ephemeral"}},` +
		` {"type":"text" , "text":"go on"}],"x":{ "y" : 1.0}}`
	checkWrite(t, Anthropic, []writeCase{
		{
			"one result", results, func(m *Message) { m.SetText(0, "[cleared]") },
			`{"id":"m1","role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,` +
				`"content":"[cleared]","cache_control":{"type":"ephemeral"}},` +
				`{"type":"text" , "text":"go on"}],"x":{ "y" : 1.0}}`,
		},
		{
			"a result without content", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}`, func(m *Message) { m.SetText(0, "a") },
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a"}]}`,
		},
		{
			"a part removed", results, func(m *Message) { m.Parts = m.Parts[1:] },
			`{"id":"m1","role":"user","content":[{"type":"text" , "text":"go on"}],"x":{ "y" : 1.0}}`,
		},
		{"a part added", results, func(m *Message) {
			m.Parts = []Part{{Kind: PartResult, CallID: "t0", Text: "late", Failed: true}, m.Parts[1]}
		}, `{"id":"m1","role":"user","content":[{"type":"tool_result","tool_use_id":"t0","content":"late","is_error":true},{"type":"text" , "text":"go on"}],"x":{ "y" : 1.0}}`},
		{"string", `{"role":"user","content":"a"}`, func(m *Message) { m.SetText(0, `b"`) }, `{"role":"user","content":"b\""}`},
		{
			"string becomes blocks", `{"role":"user","content":"a"}`, func(m *Message) { m.Parts = append([]Part{{Text: "before"}}, m.Parts...) },
			`{"role":"user","content":[{"type":"text","text":"before"},{"type":"text","text":"a"}]}`,
		},
		{
			"text block", `{"role":"user","content":[{"text":"a","type":"text","cache_control":{}}]}`, func(m *Message) { m.SetText(0, "b") },
			`{"role":"user","content":[{"text":"b","type":"text","cache_control":{}}]}`,
		},
		{
			"an image gives way to text", `{"role":"user","content":[{"type":"image","source":{}}]}`, func(m *Message) { m.SetText(0, "[image]") },
			`{"role":"user","content":[{"type":"text","text":"[image]"}]}`,
		},
		{
			"thinking", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}`, func(m *Message) { m.SetText(0, "") },
			`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"}]}`,
		},
		{
			"a call has no text", `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}`, func(m *Message) { m.SetText(0, "x") },
			`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}`,
		},

		{"new text", "", func(m *Message) { *m = Message{Role: RoleUser, Parts: []Part{{Text: "a\xffb"}}} }, `{"role":"user","content":"a` + "\uFFFD" + `b"}`},
		{"new result", "", func(m *Message) {
			*m = Message{Role: RoleTool, Parts: []Part{{Kind: PartResult, CallID: "t1", Tool: "n", Text: "gone"}}}
		}, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"gone"}]}`},
		{"new calls", "", func(m *Message) {
			*m = Message{Role: RoleAssistant, Parts: []Part{{Text: "a"}, {Kind: PartCall, CallID: "t1", Tool: "n"}, {Kind: PartCall, CallID: "t2", Tool: "n", Args: codec.Raw(`{"a":1}`)}}}
		}, `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"n","input":{}},{"type":"tool_use","id":"t2","name":"n","input":{"a":1}}]}`},
	})
	checkWriteErrors(t, Anthropic, map[string]Message{
		"new image":    {Role: RoleUser, Parts: []Part{{Kind: PartImage}}},
		"new thinking": {Role: RoleUser, Parts: []Part{{Kind: PartThinking, Text: "a"}}},
		"no object":    {Role: RoleUser, Raw: codec.Raw(`[]`)},
	})
}
