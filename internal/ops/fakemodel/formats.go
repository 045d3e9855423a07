package fakemodel

import (
	"encoding/json"
	"fmt"
	"maps"
)

func (c *Call) id(kind string) string { return fmt.Sprintf("%s%d", kind, c.Number) }

// chat is an answer of chat completions.
func (c *Call) chat(a Answer) object {
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	if a.Text != "" {
		message["content"] = a.Text
	}
	if uses := a.chatUses(); uses != nil {
		message["tool_calls"] = uses
	}
	return c.chatObject("chat.completion", a, object{"index": 0, "finish_reason": a.finish(), "logprobs": nil, "message": message}, true)
}

func (a *Answer) chatUses() (uses []object) {
	for _, u := range a.Uses {
		uses = append(uses, object{"id": u.ID, "type": "function", "function": object{"name": u.Name, "arguments": u.Arguments}})
	}
	return uses
}

// stop is why the answer ends, in the words of its API.
func (a *Answer) stop(forTools, otherwise string) string {
	if len(a.Uses) > 0 {
		return forTools
	}
	return otherwise
}

func (a *Answer) finish() string { return a.stop("tool_calls", "stop") }

func (c *Call) chatObject(kind string, a Answer, choice object, usage bool) object {
	out := object{"id": c.id("chatcmpl-"), "object": kind, "created": 1_700_000_000, "model": c.Model, "choices": []object{}}
	if choice != nil {
		out["choices"] = []object{choice}
	}
	if usage {
		out["usage"] = object{"prompt_tokens": c.Tokens, "completion_tokens": a.tokens(), "total_tokens": c.Tokens + a.tokens()}
	}
	return out
}

func (c *Call) chatStream(a Answer) (out []object) {
	delta := func(d object, finish any) {
		out = append(out, c.chatObject("chat.completion.chunk", a, object{"index": 0, "delta": d, "finish_reason": finish}, false))
	}
	delta(object{"role": "assistant", "content": ""}, nil)
	for _, part := range pieces(a.Text) {
		delta(object{"content": part}, nil)
	}
	for i, use := range a.chatUses() {
		use["index"] = i
		delta(object{"tool_calls": []object{use}}, nil)
	}
	delta(object{}, a.finish())
	return append(out, c.chatObject("chat.completion.chunk", a, nil, true))
}

// response is an answer of the Responses API.
func (c *Call) response(a Answer) object { return c.responseObject(a, "completed", c.items(a)) }

func (c *Call) responseObject(a Answer, status string, items []any) object {
	return object{
		"id": c.id("resp_"), "object": "response", "created_at": 1_700_000_000, "status": status, "model": c.Model, "output": items,
		"usage": object{"input_tokens": c.Tokens, "output_tokens": a.tokens(), "total_tokens": c.Tokens + a.tokens()},
	}
}

func (c *Call) items(a Answer) []any {
	items := []any{}
	if a.Thinking != nil {
		items = append(items, a.Thinking)
	}
	if a.Text != "" {
		items = append(items, object{
			"type": "message", "id": c.id("msg_"), "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": a.Text, "annotations": []any{}}},
		})
	}
	for _, u := range a.Uses {
		items = append(items, object{
			"type": "function_call", "id": "fc_" + u.ID, "call_id": u.ID, "name": u.Name, "arguments": u.Arguments, "status": "completed",
		})
	}
	return items
}

func (c *Call) responseStream(a Answer) (out []object) {
	event := func(kind string, members object) {
		members["type"], members["sequence_number"] = kind, len(out)
		out = append(out, members)
	}
	event("response.created", object{"response": c.responseObject(a, "in_progress", []any{})})
	items := c.items(a)
	for i, item := range items {
		event("response.output_item.added", object{"output_index": i, "item": begun(item)})
		if o, ok := item.(object); ok && o["type"] == "message" {
			part := func(member string, v any) object {
				return object{"output_index": i, "content_index": 0, "item_id": o["id"], member: v}
			}
			event("response.content_part.added", part("part", object{"type": "output_text", "text": "", "annotations": []any{}}))
			for _, piece := range pieces(a.Text) {
				event("response.output_text.delta", part("delta", piece))
			}
			event("response.output_text.done", part("text", a.Text))
		}
		event("response.output_item.done", object{"output_index": i, "item": item})
	}
	event("response.completed", object{"response": c.responseObject(a, "completed", items)})
	return out
}

// begun is an item as a stream begins it.
func begun(item any) any {
	o, ok := item.(object)
	if !ok {
		return item
	}
	o = maps.Clone(o)
	o["status"] = "in_progress"
	for member, empty := range map[string]any{"content": []any{}, "arguments": ""} {
		if o[member] != nil {
			o[member] = empty
		}
	}
	return o
}

// message is an answer of Anthropic.
func (c *Call) message(a Answer) object {
	content := []any{}
	if a.Thinking != nil {
		content = append(content, a.Thinking)
	}
	if a.Text != "" {
		content = append(content, object{"type": "text", "text": a.Text})
	}
	for _, u := range a.Uses {
		content = append(content, object{"type": "tool_use", "id": u.ID, "name": u.Name, "input": json.RawMessage(u.Arguments)})
	}
	return object{
		"id": c.id("msg_"), "type": "message", "role": "assistant", "model": c.Model, "content": content,
		"stop_reason": a.stop("tool_use", "end_turn"), "stop_sequence": nil,
		"usage": object{"input_tokens": c.Tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": a.tokens()},
	}
}

func (c *Call) messageStream(a Answer) (out []object) {
	start := c.message(Answer{})
	start["stop_reason"] = nil
	out = append(out, object{"type": "message_start", "message": start})
	index := 0
	block := func(begin any, deltas ...object) {
		out = append(out, object{"type": "content_block_start", "index": index, "content_block": begin})
		for _, d := range deltas {
			out = append(out, object{"type": "content_block_delta", "index": index, "delta": d})
		}
		out = append(out, object{"type": "content_block_stop", "index": index})
		index++
	}
	if a.Thinking != nil {
		var b struct{ Type, Thinking, Signature string }
		_ = json.Unmarshal(a.Thinking, &b)
		block(object{"type": b.Type, "thinking": "", "signature": ""},
			object{"type": "thinking_delta", "thinking": b.Thinking}, object{"type": "signature_delta", "signature": b.Signature})
	}
	var parts []object
	for _, part := range pieces(a.Text) {
		parts = append(parts, object{"type": "text_delta", "text": part})
	}
	if parts != nil {
		block(object{"type": "text", "text": ""}, parts...)
	}
	for _, u := range a.Uses {
		block(object{"type": "tool_use", "id": u.ID, "name": u.Name, "input": object{}}, object{"type": "input_json_delta", "partial_json": u.Arguments})
	}
	return append(out,
		object{"type": "message_delta", "delta": object{"stop_reason": a.stop("tool_use", "end_turn"), "stop_sequence": nil}, "usage": object{"output_tokens": a.tokens()}},
		object{"type": "message_stop"})
}
