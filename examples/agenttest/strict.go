package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"compactd/internal/events"
	"compactd/internal/events/validate"
	"compactd/internal/testkit/strict"
)

// The tokens that a [Strict] takes, and how many of them are for the answer.
const (
	StrictWindow = 16_384
	StrictOutput = 1_024
)

// Strict is a provider with a model that takes 16,384 tokens, and histories that are valid. Each
// answer is one call of a tool, behind reasoning where the wire format has it.
type Strict struct {
	Format events.Format
	Model  string
	At     func(call int) // is called before each call, nil for none

	mu     sync.Mutex // guards result
	result Result
}

// Result is what a [Strict] has received.
type Result struct {
	Calls   int
	Most    int      // tokens of a call
	Refused []string // calls that were not valid, or too long
	TooLong int      // of them, for their length alone
}

// Result returns what was received until now.
func (p *Strict) Result() Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result
}

func (p *Strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ Messages, Input []json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	history := slices.Concat(in.Messages, in.Input)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.Calls++
	if p.At != nil {
		p.At(p.result.Calls)
	}
	tokens := 0
	for _, m := range history {
		tokens += len(m)/4 + 4
	}
	p.result.Most = max(p.result.Most, tokens)
	refused := p.check(history)
	w.Header().Set("Content-Type", "application/json")
	if len(refused) == 0 && tokens > StrictWindow-StrictOutput {
		p.result.TooLong++
		refused = []string{fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.",
			StrictWindow-StrictOutput, tokens)}
	}
	if len(refused) > 0 {
		p.result.Refused = append(p.result.Refused, fmt.Sprintf("call %d: %v", p.result.Calls, refused))
		w.WriteHeader(http.StatusBadRequest)
		write(w, object{"error": object{"type": "invalid_request_error", "message": strings.Join(refused, "; ")}})
		return
	}
	write(w, p.answer(history, tokens))
}

// check returns what the provider would refuse.
func (p *Strict) check(history []json.RawMessage) (refused []string) {
	if p.Format == events.Responses {
		items := make([]events.Raw, len(history))
		for i, item := range history {
			items[i] = events.Raw(item)
		}
		for _, v := range validate.Messages(p.Format, items) {
			refused = append(refused, fmt.Sprint(v))
		}
		return refused
	}
	for _, bad := range strict.Refuse(p.call(history)) {
		refused = append(refused, bad.String())
	}
	return refused
}

func (p *Strict) call(history []json.RawMessage) strict.Call {
	return strict.Call{Provider: string(p.Format), Model: p.Model, Messages: history}
}

// answer calls a tool for a file.
func (p *Strict) answer(history []json.RawMessage, tokens int) object {
	id, arguments := fmt.Sprint("call_", p.result.Calls), fmt.Sprintf(`{"path":"f%d.go"}`, p.result.Calls)
	switch p.Format {
	case events.Responses:
		return object{
			"id": fmt.Sprint("resp_", p.result.Calls), "object": "response", "status": "completed", "model": p.Model,
			"usage": object{"input_tokens": tokens, "output_tokens": 30, "total_tokens": tokens + 30},
			"output": []object{
				{"type": "reasoning", "id": fmt.Sprint("rs_", p.result.Calls), "summary": []object{}, "encrypted_content": fmt.Sprintf("%0200d", p.result.Calls)},
				{"type": "function_call", "id": fmt.Sprint("fc_", p.result.Calls), "call_id": id, "name": "read_file", "arguments": arguments, "status": "completed"},
			},
		}
	case events.Anthropic:
		return object{
			"id": fmt.Sprint("msg_", p.result.Calls), "type": "message", "role": "assistant", "model": p.Model, "stop_reason": "tool_use",
			"usage": object{"input_tokens": tokens, "output_tokens": 30},
			"content": []any{
				strict.Think(p.call(history), "The next file may say why."),
				object{"type": "tool_use", "id": id, "name": "read_file", "input": json.RawMessage(arguments)},
			},
		}
	}
	return object{
		"id": fmt.Sprint("chatcmpl-", p.result.Calls), "object": "chat.completion", "model": p.Model,
		"usage": object{"prompt_tokens": tokens, "completion_tokens": 30, "total_tokens": tokens + 30},
		"choices": []object{{"index": 0, "finish_reason": "tool_calls", "message": object{
			"role": "assistant", "content": nil,
			"tool_calls": []object{{"id": id, "type": "function", "function": object{"name": "read_file", "arguments": arguments}}},
		}}},
	}
}
