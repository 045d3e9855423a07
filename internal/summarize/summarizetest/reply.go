package summarizetest

import (
	"net/http"

	"compactd/internal/events/codec"
)

// object is JSON.
type object = map[string]any

// Usage of every good answer, in all dialects: the parts that a dialect counts
// apart, such as cached input and thoughts, add up to it.
const (
	InputTokens  = 1_234
	OutputTokens = 56
)

func (s *Server) writeAnswer(w http.ResponseWriter, p Prompt, m Mode) {
	send(w, http.StatusOK, s.reply(p, m))
}

// reply is an answer with status 200.
func (s *Server) reply(p Prompt, m Mode) []byte {
	text := s.answer(p)
	if m == Empty || m == Refusal && p.Dialect != Anthropic {
		text = ""
	}
	var o object
	switch p.Dialect {
	case OpenAI:
		o = openAIReply(p, m, text)
	case Anthropic:
		o = anthropicReply(p, m, text)
	default:
		o = googleReply(p, m, text)
	}
	b, err := codec.Marshal(o)
	if err != nil {
		panic(err) // an answer that is no UTF-8: a fault of the test
	}
	return b
}

// Shape: https://platform.openai.com/docs/api-reference/chat/object.
func openAIReply(p Prompt, m Mode, text string) object {
	msg := object{"role": "assistant", "content": text, "refusal": nil}
	finish := "stop"
	switch m {
	case Length:
		finish = "length"
	case ToolCall:
		finish, msg["content"] = "tool_calls", nil
		msg["tool_calls"] = []object{{"id": "call_1", "type": "function", "function": object{"name": "bash", "arguments": `{"command":"id"}`}}}
	case Refusal:
		msg["content"], msg["refusal"] = nil, "I can't help with that."
	}
	return object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": p.Model,
		"choices": []object{{"index": 0, "message": msg, "finish_reason": finish, "logprobs": nil}},
		"usage": object{
			"prompt_tokens": InputTokens, "completion_tokens": OutputTokens, "total_tokens": InputTokens + OutputTokens,
			"prompt_tokens_details": object{"cached_tokens": 1_000}, "completion_tokens_details": object{"reasoning_tokens": 16},
		},
	}
}

// Shape: https://platform.claude.com/docs/en/api/messages.
func anthropicReply(p Prompt, m Mode, text string) object {
	content := []object{{"type": "text", "text": text}}
	finish := "end_turn"
	switch m {
	case Empty:
		content = []object{}
	case Length:
		finish = "max_tokens"
	case ToolCall:
		finish = "tool_use"
		content = append(content, object{"type": "tool_use", "id": "toolu_1", "name": "bash", "input": object{"command": "id"}})
	case Refusal:
		finish = "refusal"
	}
	return object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": p.Model,
		"content": content, "stop_reason": finish, "stop_sequence": nil,
		"usage": object{
			"input_tokens": 200, "cache_creation_input_tokens": 34, "cache_read_input_tokens": InputTokens - 234,
			"output_tokens": OutputTokens,
		},
	}
}

// Shape: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse.
func googleReply(p Prompt, m Mode, text string) object {
	usage := object{"promptTokenCount": InputTokens, "candidatesTokenCount": OutputTokens - 16, "thoughtsTokenCount": 16}
	if m == PromptRefused {
		return object{"promptFeedback": object{"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage, "modelVersion": p.Model}
	}
	parts := []object{{"text": "a thought", "thought": true}, {"text": text}}
	finish := "STOP"
	switch m {
	case Length:
		finish = "MAX_TOKENS"
	case ToolCall:
		parts = append(parts, object{"functionCall": object{"name": "bash", "args": object{"command": "id"}}})
	case Refusal:
		finish, parts = "SAFETY", nil
	}
	return object{
		"candidates":    []object{{"content": object{"role": "model", "parts": parts}, "finishReason": finish, "index": 0}},
		"usageMetadata": usage, "modelVersion": p.Model, "responseId": "r1",
	}
}
