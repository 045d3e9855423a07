package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"compactd/internal/events"
	"compactd/internal/events/validate"
)

// Fake is a model behind HTTP, in the wire format of one provider.
type Fake struct {
	// URL is where its SDK sends calls, without the path.
	URL string

	format events.Format
	window int // in tokens, four bytes each

	mu      sync.Mutex // guards the fields below
	calls   int
	refused int // as too long
	invalid []string
	tokens  int // of all answers and results
}

// object is JSON.
type object = map[string]any

// Model serves a model of a provider until the test ends.
func Model(t *testing.T, format events.Format, window int) *Fake {
	t.Helper()
	m := &Fake{format: format, window: window}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	m.URL = s.URL
	return m
}

// Check fails the test when a call was not valid, none was too long, or the model's
// window was not gone through several times. A session that is done has history.
func (m *Fake) Check(t *testing.T, history []json.RawMessage) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, text := range m.invalid {
		t.Errorf("a call was not valid: %s", text)
	}
	if m.refused == 0 {
		t.Error("no call was too long")
	}
	if m.tokens < 3*m.window {
		t.Errorf("the model produced %d tokens, with a window of %d", m.tokens, m.window)
	}
	raws := make([]events.Raw, len(history))
	for i, h := range history {
		raws[i] = events.Raw(h)
	}
	if v := validate.Messages(m.format, raws); len(v) > 0 || len(raws) == 0 {
		t.Errorf("the history at the end, %d messages, is not valid: %v", len(raws), v)
	}
	t.Logf("%d calls, %d of them too long, %d tokens produced, %d messages at the end", m.calls, m.refused, m.tokens, len(history))
}

// ServeHTTP answers a call: every second time with a tool call, else with words.
func (m *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in struct {
		Messages []events.Raw `json:"messages"`
		Tools    []events.Raw `json:"tools"`
	}
	if err != nil || events.Unmarshal(body, &in) != nil || len(in.Tools) == 0 {
		http.Error(w, "no call with messages and tools", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	tokens := len(body) / 4
	w.Header().Set("Content-Type", "application/json")
	if v := validate.Messages(m.format, in.Messages); len(v) > 0 {
		m.invalid = append(m.invalid, fmt.Sprint(v))
	}
	if tokens > m.window {
		m.refused++
		w.WriteHeader(http.StatusBadRequest)
		write(w, m.tooLong(tokens))
		return
	}
	m.tokens += 250
	text := fmt.Sprintf("Answer %d. ", m.calls) + strings.Repeat("There is more to say about it. ", 32)
	write(w, m.answer(text, tokens, m.calls%2 == 1))
}

// tooLong is the error of the provider for a prompt above its window.
func (m *Fake) tooLong(tokens int) object {
	if m.format == events.Anthropic {
		return object{"type": "error", "error": object{"type": "invalid_request_error", "message": fmt.Sprintf("prompt is too long: %d tokens > %d maximum", tokens, m.window)}}
	}
	return object{"error": object{
		"type": "invalid_request_error", "code": "context_length_exceeded", "param": "messages",
		"message": fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", m.window, tokens),
	}}
}

// answer returns a text, and calls a tool for a file if it shall use one.
func (m *Fake) answer(text string, tokens int, tool bool) object {
	id, args := fmt.Sprintf("call_%d", m.calls), object{"path": "notes.txt"}
	if m.format == events.Anthropic {
		content, stop := []object{{"type": "text", "text": text}}, "end_turn"
		if tool {
			content, stop = append(content, object{"type": "tool_use", "id": id, "name": "read_file", "input": args}), "tool_use"
		}
		return object{
			"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": content, "stop_reason": stop, "stop_sequence": nil,
			"usage": object{"input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": len(text) / 4},
		}
	}
	message, finish := object{"role": "assistant", "content": text, "refusal": nil}, "stop"
	if tool {
		raw, _ := events.Marshal(args) // a string
		message["tool_calls"] = []object{{"id": id, "type": "function", "function": object{"name": "read_file", "arguments": string(raw)}}}
		finish = "tool_calls"
	}
	return object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "gpt-test",
		"choices": []object{{"index": 0, "message": message, "finish_reason": finish, "logprobs": nil}},
		"usage":   object{"prompt_tokens": tokens, "completion_tokens": len(text) / 4, "total_tokens": tokens + len(text)/4},
	}
}

func write(w io.Writer, o object) { _ = json.NewEncoder(w).Encode(o) } // who hung up needs no answer
