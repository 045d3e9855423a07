package strict

import "encoding/json"

const converseAPI = "docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html, 2026-11"

var converse = []string{"bedrock"}

// converseRules are those of the Converse API beside the ones that it has in common with that of
// Anthropic's messages.
var converseRules = []Rule{
	{"alternate", converse, converseAPI, func(r *request) {
		for i, m := range r.messages {
			if i > 0 && m.Role == r.messages[i-1].Role {
				r.refuse(i, "A conversation must alternate between user and assistant roles")
			}
		}
	}},
}

// converse reads a block of the Converse API, which is named by its one member.
func (b *block) converse() {
	var members map[string]json.RawMessage
	if b.Type != "" || json.Unmarshal(b.raw, &members) != nil || len(members) != 1 {
		return
	}
	for name := range members {
		b.Type = name
	}
	var in struct {
		Text    *string
		ToolUse *struct {
			ToolUseID string `json:"toolUseId"`
		} `json:"toolUse"`
		ToolResult *struct {
			ToolUseID string `json:"toolUseId"`
		} `json:"toolResult"`
		Reasoning *struct {
			Text *struct {
				Signature string `json:"signature"`
			} `json:"reasoningText"`
			Redacted string `json:"redactedContent"`
		} `json:"reasoningContent"`
	}
	if json.Unmarshal(b.raw, &in) != nil {
		return
	}
	switch {
	case in.Text != nil:
		b.Type, b.Text = "text", *in.Text
	case in.ToolUse != nil:
		b.Type, b.ID = "tool_use", in.ToolUse.ToolUseID
	case in.ToolResult != nil:
		b.Type, b.ToolUseID = "tool_result", in.ToolResult.ToolUseID
	case in.Reasoning != nil && in.Reasoning.Text != nil:
		b.Type, b.Signature = "thinking", in.Reasoning.Text.Signature
	case in.Reasoning != nil:
		b.Type, b.Data = "redacted_thinking", in.Reasoning.Redacted
	}
}
