package fakemodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/validate"
)

// Model is an [http.Handler].
type Model struct {
	// Window is how many tokens a call may have with its answer, Output how many of them are for
	// the answer.
	Window, Output int
	// Answer returns the answer of the model.
	Answer func(*Call) Answer
	// Refuse returns why a call is not valid. Default: the rules of package validate.
	Refuse func(*Call) []string
	// OnCall is called with each call that was answered or refused; nil for none.
	OnCall func(*Call)

	mu    sync.Mutex // guards calls
	calls int
}

// Call is a request of an agent.
type Call struct {
	Number   int // from 1
	Format   events.Format
	Model    string
	System   json.RawMessage // beside the messages; nil for none
	Tools    json.RawMessage
	Messages []json.RawMessage
	Stream   bool
	Tokens   int      // of four bytes each
	TooLong  bool     // it was refused for its length
	Refused  []string // other defects
}

// Answer is an answer of a model: its parts follow each other in this order.
type Answer struct {
	Thinking json.RawMessage // a block of Anthropic, or an item of Responses; nil for none
	Text     string
	Uses     []Use
}

// Use is a call of a tool.
type Use struct {
	ID, Name, Arguments string
}

type object = map[string]any

const mostBody = 32 << 20

// ServeHTTP answers a call by its path.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	format := formatOf(r.URL.Path)
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") {
		w.Header().Set("Content-Type", "application/json")
		write(w, object{"object": "list", "data": []object{{"id": "fake", "object": "model", "created": 1_700_000_000, "owned_by": "compactd"}}})
		return
	}
	if r.Method != http.MethodPost || format == "" {
		w.WriteHeader(http.StatusNotFound)
		write(w, object{"error": object{"type": "not_found_error", "message": "This model has chat/completions, responses and messages."}})
		return
	}
	c, err := read(http.MaxBytesReader(w, r.Body, mostBody), format)
	if err != nil {
		refuse(w, format, err.Error())
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	c.Number = m.calls
	c.Refused = m.check(c)
	c.TooLong = len(c.Refused) == 0 && c.Tokens > m.Window-m.Output
	if m.OnCall != nil {
		m.OnCall(c)
	}
	switch {
	case c.TooLong:
		refuse(w, format, tooLong(format, c.Tokens, m.Window-m.Output))
	case len(c.Refused) > 0:
		refuse(w, format, strings.Join(c.Refused, "; "))
	default:
		c.answer(w, m.Answer(c))
	}
}

func formatOf(path string) events.Format {
	for end, format := range map[string]events.Format{
		"/chat/completions": events.OpenAI, "/responses": events.Responses, "/messages": events.Anthropic,
	} {
		if strings.HasSuffix(path, end) {
			return format
		}
	}
	return ""
}

func read(body io.Reader, format events.Format) (*Call, error) {
	var in struct {
		Model                string
		System, Instructions json.RawMessage
		Tools                json.RawMessage
		Messages             []json.RawMessage
		Input                json.RawMessage
		Stream               bool
	}
	if err := json.NewDecoder(body).Decode(&in); err != nil {
		return nil, fmt.Errorf("read the body as JSON: %w", err)
	}
	var text string
	if json.Unmarshal(in.Input, &text) == nil {
		in.Messages = []json.RawMessage{marshal(object{"role": "user", "content": text})}
	} else if len(in.Input) > 0 {
		if err := json.Unmarshal(in.Input, &in.Messages); err != nil {
			return nil, fmt.Errorf("read input: %w", err)
		}
	}
	c := &Call{Format: format, Model: in.Model, System: in.System, Tools: in.Tools, Messages: in.Messages, Stream: in.Stream}
	if in.Instructions != nil {
		c.System = in.Instructions
	}
	c.Tokens = (len(c.System) + len(c.Tools)) / 4
	for _, message := range c.Messages {
		c.Tokens += len(message)/4 + 4
	}
	return c, nil
}

// check returns what the provider would refuse.
func (m *Model) check(c *Call) (refused []string) {
	if m.Refuse != nil {
		return m.Refuse(c)
	}
	messages := make([]codec.Raw, len(c.Messages))
	for i, message := range c.Messages {
		messages[i] = codec.Raw(message)
	}
	for _, v := range validate.Messages(c.Format, messages) {
		refused = append(refused, fmt.Sprint(v))
	}
	return refused
}

func tooLong(format events.Format, tokens, most int) string {
	if format == events.Anthropic {
		return fmt.Sprintf("prompt is too long: %d tokens > %d maximum", tokens, most)
	}
	return fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.", most, tokens)
}

func refuse(w http.ResponseWriter, format events.Format, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	out := object{"error": object{"type": "invalid_request_error", "message": message}}
	if format == events.Anthropic {
		out["type"] = "error"
	}
	write(w, out)
}

func (c *Call) answer(w http.ResponseWriter, a Answer) {
	whole, stream := c.chat, c.chatStream
	switch c.Format {
	case events.Responses:
		whole, stream = c.response, c.responseStream
	case events.Anthropic:
		whole, stream = c.message, c.messageStream
	}
	if !c.Stream {
		w.Header().Set("Content-Type", "application/json")
		write(w, whole(a))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range stream(a) {
		if name, ok := e["type"].(string); ok {
			_, _ = fmt.Fprintf(w, "event: %s\n", name)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", marshal(e))
	}
	if c.Format == events.OpenAI {
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}
}

// tokens estimates the tokens of an answer.
func (a *Answer) tokens() int {
	n := len(a.Thinking) + len(a.Text)
	for _, u := range a.Uses {
		n += len(u.Name) + len(u.Arguments)
	}
	return n/4 + 1
}

// pieces cuts a text for a stream, behind its words.
func pieces(text string) []string {
	if text == "" {
		return nil
	}
	return strings.SplitAfter(text, " ")
}

func marshal(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`null`) // of a thinking block that is no JSON
	}
	return data
}

func write(w io.Writer, o object) { _, _ = w.Write(marshal(o)) } // an agent that hung up needs no answer
