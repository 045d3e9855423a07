package dialect_test

import (
	"testing"

	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

func TestReadNeuroLink(t *testing.T) {
	checkRead(t, NeuroLink, []readCase{
		{"user", `{"id":"m1","role":"user","content":"a","timestamp":"2026-03-01T10:00:00.000Z"}`, Message{Role: RoleUser, Parts: []Part{{Text: "a"}}}},
		{"system", `{"id":"m1","role":"system","content":"a"}`, Message{Role: RoleSystem, Parts: []Part{{Text: "a"}}}},
		{"assistant", `{"id":"m1","role":"assistant","content":""}`, Message{Role: RoleAssistant, Parts: []Part{{}}}},
		{"array", `{"role":"user","content":[{"type":"text","text":"a"}]}`, Message{Role: RoleUser, Parts: []Part{{Kind: PartOther, Raw: codec.Raw(`[{"type":"text","text":"a"}]`)}}}},
		{
			"call", `{"id":"m1","role":"tool_call","content":"","tool":"read","args":{"p":1,"p":2}}`,
			Message{Role: RoleAssistant, Parts: []Part{{Kind: PartCall, Tool: "read", Args: codec.Raw(`{"p":1,"p":2}`)}}},
		},
		{
			"call without content", `{"role":"tool_call","tool":"read","toolCallId":"c1"}`,
			Message{Role: RoleAssistant, Parts: []Part{{Kind: PartCall, Tool: "read", CallID: "c1"}}},
		},
		{
			"call with words", `{"role":"tool_call","content":"reading","tool":"read","tool_call_id":"c1"}`,
			Message{Role: RoleAssistant, Parts: []Part{{Text: "reading"}, {Kind: PartCall, Tool: "read", CallID: "c1"}}},
		},
		{
			"call id in metadata", `{"metadata":{"toolCallId":"c1"},"role":"tool_call","content":"","tool":"read"}`,
			Message{Role: RoleAssistant, Parts: []Part{{Kind: PartCall, Tool: "read", CallID: "c1"}}},
		},
		{
			"result", `{"role":"tool_result","content":"ok","tool":"read","toolCallId":"c1","result":{"success":true}}`,
			Message{Role: RoleTool, Parts: []Part{{Kind: PartResult, Tool: "read", CallID: "c1", Text: "ok"}}},
		},
		{
			"failed result", `{"role":"tool_result","content":"no","result":{"success":false},"metadata":null}`,
			Message{Role: RoleTool, Parts: []Part{{Kind: PartResult, Text: "no", Failed: true}}},
		},
		{
			"result that is an object", `{"role":"tool_result","content":{"ok": true},"result":7}`,
			Message{Role: RoleTool, Parts: []Part{{Kind: PartResult, Text: `{"ok": true}`, Raw: codec.Raw(`{"ok": true}`)}}},
		},
	})
	checkReadProblems(t, NeuroLink, map[string]error{
		`{"role":"tool","content":"a"}`:       dialect.ErrNoRole,
		`{"role":"tool_result","content":1}`:  dialect.ErrNoContent,
		`{"role":"assistant","content":null}`: dialect.ErrNoContent,
	})
}

func TestWriteNeuroLink(t *testing.T) {
	checkWrite(t, NeuroLink, []writeCase{
		{
			"result", `{"id":"m1","role":"tool_result","content":"long","tool":"read","result":{ "success" : true}}`, func(m *Message) { m.SetText(0, "[cleared]") },
			`{"id":"m1","role":"tool_result","content":"[cleared]","tool":"read","result":{ "success" : true},"metadata":{"truncated":true}}`,
		},
		{
			"metadata is merged", `{"metadata":{"toolCallId":"c","truncated":false,"x":1.0},"role":"tool_result","content":{"a":1}}`, func(m *Message) { m.SetText(0, "b") },
			`{"metadata":{"toolCallId":"c","truncated":true,"x":1.0},"role":"tool_result","content":"b"}`,
		},
		{
			"metadata that is none", `{"role":"user","content":"a","metadata":null}`, func(m *Message) { m.SetText(0, "b") },
			`{"role":"user","content":"b","metadata":{"truncated":true}}`,
		},
		{
			"words of a call", `{"role":"tool_call","content":"reading","tool":"read","args":{ "a" : 1}}`, func(m *Message) { m.SetText(0, "r") },
			`{"role":"tool_call","content":"r","tool":"read","args":{ "a" : 1},"metadata":{"truncated":true}}`,
		},
		{
			"words of a call removed", `{"role":"tool_call","content":"reading","tool":"read"}`, func(m *Message) { m.Parts = m.Parts[1:] },
			`{"role":"tool_call","content":"","tool":"read","metadata":{"truncated":true}}`,
		},
		{"a call without content", `{"role":"tool_call","tool":"read"}`, func(*Message) {}, `{"role":"tool_call","tool":"read","metadata":{"truncated":true}}`},
		{"an array left alone", `{"role":"user","content":[ 1 ]}`, func(*Message) {}, `{"role":"user","content":[ 1 ],"metadata":{"truncated":true}}`},
		{"an array gives way to text", `{"role":"user","content":[1]}`, func(m *Message) { m.SetText(0, "[gone]") }, `{"role":"user","content":"[gone]","metadata":{"truncated":true}}`},
		{
			"texts merged", `{"role":"user","content":"a"}`, func(m *Message) { m.Parts = append(m.Parts, Part{Text: "b"}) },
			`{"role":"user","content":"a\nb","metadata":{"truncated":true}}`,
		},

		{"new text", "", func(m *Message) { *m = Message{ID: "x", Role: RoleUser, Parts: []Part{{Text: "a"}}} }, `{"id":"x","role":"user","content":"a"}`},
		{"new call", "", func(m *Message) {
			*m = Message{Role: RoleAssistant, Parts: []Part{{Text: "a"}, {Kind: PartCall, CallID: "c", Tool: "n", Args: codec.Raw(`{}`)}}}
		}, `{"role":"tool_call","content":"a","tool":"n","args":{},"toolCallId":"c","metadata":{"truncated":true}}`},
		{
			"new call of an unknown tool", "", func(m *Message) { *m = Message{Role: RoleAssistant, Parts: []Part{{Kind: PartCall}}} },
			`{"role":"tool_call","content":"","metadata":{"truncated":true}}`,
		},
		{"new result", "", func(m *Message) {
			*m = Message{ID: "repair-result-1", Role: RoleTool, Parts: []Part{{Kind: PartResult, Tool: "n", Text: "gone"}}}
		}, `{"id":"repair-result-1","role":"tool_result","content":"gone","tool":"n","metadata":{"truncated":true}}`},
	})
	call := Part{Kind: PartCall, Tool: "n"}
	checkWriteErrors(t, NeuroLink, map[string]Message{
		"two calls":          {Role: RoleAssistant, Parts: []Part{call, call}},
		"a call too many":    {Role: RoleAssistant, Parts: []Part{call}, Raw: codec.Raw(`{"role":"assistant","content":"a"}`)},
		"a call lost":        {Role: RoleAssistant, Parts: []Part{{Text: "a"}}, Raw: codec.Raw(`{"role":"tool_call","content":"a"}`)},
		"two contents":       {Role: RoleUser, Parts: []Part{{Kind: PartOther, Raw: codec.Raw(`[]`)}, {Kind: PartOther, Raw: codec.Raw(`[]`)}}},
		"content and text":   {Role: RoleUser, Parts: []Part{{Kind: PartOther, Raw: codec.Raw(`[]`)}, {Text: "a"}}},
		"image from nowhere": {Role: RoleUser, Parts: []Part{{Kind: PartImage}}},
	})
}
