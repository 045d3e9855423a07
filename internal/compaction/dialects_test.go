package compaction_test

import (
	"compactd/internal/events/codec"

	"compactd/internal/events/dialect"
)

// The messages of a test's conversation in the dialects that are not in session_test.go.

func (s msg) responses() []object {
	var out []object
	for _, r := range s.results {
		o := object{"type": "function_call_output", "call_id": r.id, "output": r.text}
		if r.failed {
			o["status"] = "failed"
		}
		out = append(out, o)
	}
	if s.role == dialect.RoleTool {
		return out
	}
	if s.role == dialect.RoleAssistant && (s.thought || len(s.calls) > 0) {
		out = append(out, object{"type": "reasoning", "id": "rs_1", "summary": []object{{"type": "summary_text", "text": "look"}}, "encrypted_content": "gAAA"})
	}
	if s.thought {
		return out
	}
	content := []object{}
	if s.text != "" || s.role == dialect.RoleUser {
		kind := "input_text"
		if s.role == dialect.RoleAssistant {
			kind = "output_text"
		}
		content = append(content, object{"type": kind, "text": s.text})
	}
	if s.image {
		content = append(content, object{"type": "input_image", "image_url": "https://example.com/a.png"})
	}
	if len(content) > 0 || len(s.calls) == 0 {
		out = append(out, object{"type": "message", "role": s.role, "content": content, "id": "msg_1"})
	}
	for _, c := range s.calls {
		out = append(out, object{"type": "function_call", "id": "fc_" + c.id, "call_id": c.id, "name": c.tool, "arguments": c.args})
	}
	return out
}

func (s msg) gemini() []object {
	var out []object
	var responses []object
	for _, r := range s.results {
		field := "output"
		if r.failed {
			field = "error"
		}
		f := object{"name": r.tool, "response": object{field: r.text}}
		if r.id != "" {
			f["id"] = r.id
		}
		responses = append(responses, object{"functionResponse": f})
	}
	if s.role == dialect.RoleTool {
		return []object{{"role": "user", "parts": responses}}
	}
	parts := []object{}
	for _, x := range s.served {
		parts = append(parts, x.blocks(
			object{"executableCode": object{"language": "PYTHON", "code": x.args}},
			object{"codeExecutionResult": object{"outcome": "OUTCOME_OK", "output": x.text}})...)
	}
	if s.text != "" {
		parts = append(parts, object{"text": s.text})
	}
	if s.image {
		parts = append(parts, object{"fileData": object{"mimeType": "image/png", "fileUri": "https://example.com/a.png"}})
	}
	for i, c := range s.calls {
		f := object{"name": c.tool, "args": codec.Raw(c.args)}
		if c.id != "" {
			f["id"] = c.id
		}
		part := object{"functionCall": f}
		if i == 0 {
			part["thoughtSignature"] = "c2ln"
		}
		parts = append(parts, part)
	}
	role := "user"
	if s.role == dialect.RoleAssistant {
		role = "model"
	}
	if s.last {
		parts = append(parts, responses...)
	} else {
		parts = append(responses, parts...)
	}
	return append(out, object{"role": role, "parts": parts})
}

func (s msg) bedrock() []object {
	var results []object
	for _, r := range s.results {
		status := "success"
		if r.failed {
			status = "error"
		}
		results = append(results, object{"toolResult": object{"toolUseId": r.id, "content": []object{{"text": r.text}}, "status": status}})
	}
	role := s.role
	if role == dialect.RoleTool {
		role = dialect.RoleUser
	}
	blocks := []object{}
	for _, x := range s.served {
		blocks = append(blocks, x.blocks(
			object{"toolUse": object{"toolUseId": x.id, "name": x.tool, "input": codec.Raw(x.args), "type": "server_tool_use"}},
			object{"toolResult": object{"toolUseId": x.id, "content": []object{{"json": object{"text": x.text}}}, "type": x.tool + "_result"}})...)
	}
	if s.role != dialect.RoleTool && (s.text != "" || len(s.calls)+len(s.results) == 0) {
		blocks = append(blocks, object{"text": s.text})
	}
	if s.image {
		blocks = append(blocks, object{"image": object{"format": "png", "source": object{"bytes": "iVBORw0KGgo="}}})
	}
	for _, c := range s.calls {
		blocks = append(blocks, object{"toolUse": object{"toolUseId": c.id, "name": c.tool, "input": codec.Raw(c.args)}})
	}
	if s.last {
		return []object{{"role": role, "content": append(blocks, results...)}}
	}
	return []object{{"role": role, "content": append(results, blocks...)}}
}

func (s msg) aiSDK() []object {
	var out []object
	var results []object
	for _, r := range s.results {
		kind := "text"
		if r.failed {
			kind = "error-text"
		}
		results = append(results, object{"type": "tool-result", "toolCallId": r.id, "toolName": r.tool, "output": object{"type": kind, "value": r.text}})
	}
	if len(results) > 0 {
		out = append(out, object{"role": "tool", "content": results})
	}
	if s.role == dialect.RoleTool {
		return out
	}
	if s.role == dialect.RoleSystem || !s.image && len(s.calls)+len(s.served) == 0 {
		return append(out, object{"role": s.role, "content": s.text})
	}
	parts := []object{}
	for _, x := range s.served {
		parts = append(parts, x.blocks(
			object{"type": "tool-call", "toolCallId": x.id, "toolName": x.tool, "input": codec.Raw(x.args), "providerExecuted": true},
			object{"type": "tool-result", "toolCallId": x.id, "toolName": x.tool, "output": object{"type": "json", "value": object{"text": x.text}}})...)
	}
	parts = append(parts, object{"type": "text", "text": s.text})
	if s.image {
		parts = append(parts, object{"type": "image", "image": "https://example.com/a.png"})
	}
	for _, c := range s.calls {
		parts = append(parts, object{"type": "tool-call", "toolCallId": c.id, "toolName": c.tool, "input": codec.Raw(c.args)})
	}
	return append(out, object{"role": s.role, "content": parts})
}
