package dialect_test

import (
	"testing"

	"compactd/internal/events/codec"
)

// A call and its result get another id, and keep all else, in each dialect.
func TestWithCallIDs(t *testing.T) {
	for _, test := range []struct {
		f        Format
		in, want string
	}{
		{
			OpenAI,
			`{"role":"assistant","content":"a","tool_calls":[{"id":"old","type":"function","function":{"name":"n","arguments":"{ }"}},` +
				`{"id":"b","type":"function","function":{"name":"n","arguments":"{}"}}],"x":1}`,
			`{"role":"assistant","content":"a","tool_calls":[{"id":"new","type":"function","function":{"name":"n","arguments":"{ }"}},` +
				`{"id":"b","type":"function","function":{"name":"n","arguments":"{}"}}],"x":1}`,
		},
		{OpenAI, `{"role":"tool","tool_call_id":"old","content":"\u0061"}`, `{"role":"tool","tool_call_id":"new","content":"\u0061"}`},
		{
			Anthropic, `{"role":"assistant","content":[{"type":"text","text":"\u0061"},{"type":"tool_use","id":"old","name":"n","input":{}}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"\u0061"},{"type":"tool_use","id":"new","name":"n","input":{}}]}`,
		},
		{Anthropic, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"old","content":[]}]}`, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"new","content":[]}]}`},
		{
			Bedrock, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"old","name":"n","input":{}}},{"cachePoint":{"type":"default"}}]}`,
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"new","name":"n","input":{}}},{"cachePoint":{"type":"default"}}]}`,
		},
		{Bedrock, `{"role":"user","content":[{"toolResult":{"toolUseId":"old","content":[]}}]}`, `{"role":"user","content":[{"toolResult":{"toolUseId":"new","content":[]}}]}`},
		{
			Gemini, `{"role":"model","parts":[{"function_call":{"id":"old","name":"n"},"thought_signature":"s"}]}`,
			`{"role":"model","parts":[{"function_call":{"id":"new","name":"n"},"thought_signature":"s"}]}`,
		},
		{
			AISDK, `{"role":"assistant","content":[{"type":"tool-call","toolCallId":"old","toolName":"n","input":1},{"type":"tool-approval-request","approvalId":"a","toolCallId":"old"}]}`,
			`{"role":"assistant","content":[{"type":"tool-call","toolCallId":"new","toolName":"n","input":1},{"type":"tool-approval-request","approvalId":"a","toolCallId":"new"}]}`,
		},
		{NeuroLink, `{"role":"tool_call","content":"","toolCallId":"old","metadata":{"toolCallId":"old"}}`, `{"role":"tool_call","content":"","toolCallId":"new","metadata":{"toolCallId":"new"}}`},
		{Responses, `{"type":"function_call","id":"fc_1","call_id":"old","name":"n","arguments":"{}"}`, `{"type":"function_call","call_id":"new","name":"n","arguments":"{}"}`},
		{Responses, `{"type":"mcp_approval_request","id":"old","name":"n"}`, `{"type":"mcp_approval_request","id":"new","name":"n"}`},
	} {
		m, err := test.f.Read(codec.Raw(test.in))
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Parts {
			if m.Parts[i].CallID == "old" {
				got, err := test.f.Dialect().WithCallIDs(m.Clone(), map[int]string{i: "new"})
				if err != nil || string(got) != test.want {
					t.Errorf("%s: %v\n%s, want\n%s", test.f, err, got, test.want)
				}
			}
		}
	}
}
