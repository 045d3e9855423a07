package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"compactd/internal/events"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/strict"
)

const (
	modelWindow = 16_384
	modelOutput = 1_024
)

// provider has a model that takes 16,384 tokens, and histories that are valid. Each answer is
// one call of a tool, behind reasoning where the wire format has it.
type provider struct {
	format events.Format
	model  string
	at     func(call int)

	mu      sync.Mutex // guards the fields below
	calls   int
	most    int // tokens of a call
	refused []string
}

type object = map[string]any

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ Messages, Input []json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	history := slices.Concat(in.Messages, in.Input)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.at != nil {
		p.at(p.calls)
	}
	tokens := 0
	for _, m := range history {
		tokens += len(m)/4 + 4
	}
	p.most = max(p.most, tokens)
	refused := p.check(history)
	if tokens > modelWindow-modelOutput {
		refused = append(refused, fmt.Sprintf("%d tokens", tokens))
	}
	w.Header().Set("Content-Type", "application/json")
	if len(refused) > 0 {
		p.refused = append(p.refused, fmt.Sprintf("call %d: %v", p.calls, refused))
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(object{"error": object{"type": "invalid_request_error", "message": fmt.Sprint(refused)}})
		return
	}
	_ = json.NewEncoder(w).Encode(p.answer(history, tokens))
}

// check returns what the provider would refuse.
func (p *provider) check(history []json.RawMessage) (refused []string) {
	if p.format == events.Responses {
		items := make([]events.Raw, len(history))
		for i, item := range history {
			items[i] = events.Raw(item)
		}
		for _, v := range validate.Messages(p.format, items) {
			refused = append(refused, fmt.Sprint(v))
		}
		return refused
	}
	for _, bad := range strict.Refuse(p.call(history)) {
		refused = append(refused, bad.String())
	}
	return refused
}

func (p *provider) call(history []json.RawMessage) strict.Call {
	return strict.Call{Provider: string(p.format), Model: p.model, Messages: history}
}

// answer calls a tool for a file.
func (p *provider) answer(history []json.RawMessage, tokens int) object {
	id, arguments := fmt.Sprint("call_", p.calls), fmt.Sprintf(`{"path":"f%d.go"}`, p.calls)
	switch p.format {
	case events.Responses:
		return object{
			"id": fmt.Sprint("resp_", p.calls), "object": "response", "status": "completed", "model": p.model,
			"usage": object{"input_tokens": tokens, "output_tokens": 30, "total_tokens": tokens + 30},
			"output": []object{
				{"type": "reasoning", "id": fmt.Sprint("rs_", p.calls), "summary": []object{}, "encrypted_content": fmt.Sprintf("%0200d", p.calls)},
				{"type": "function_call", "id": fmt.Sprint("fc_", p.calls), "call_id": id, "name": "read_file", "arguments": arguments, "status": "completed"},
			},
		}
	case events.Anthropic:
		return object{
			"id": fmt.Sprint("msg_", p.calls), "type": "message", "role": "assistant", "model": p.model, "stop_reason": "tool_use",
			"usage": object{"input_tokens": tokens, "output_tokens": 30},
			"content": []any{
				strict.Think(p.call(history), "The next file may say why."),
				object{"type": "tool_use", "id": id, "name": "read_file", "input": json.RawMessage(arguments)},
			},
		}
	}
	return object{
		"id": fmt.Sprint("chatcmpl-", p.calls), "object": "chat.completion", "model": p.model,
		"usage": object{"prompt_tokens": tokens, "completion_tokens": 30, "total_tokens": tokens + 30},
		"choices": []object{{"index": 0, "finish_reason": "tool_calls", "message": object{
			"role": "assistant", "content": nil,
			"tool_calls": []object{{"id": id, "type": "function", "function": object{"name": "read_file", "arguments": arguments}}},
		}}},
	}
}
