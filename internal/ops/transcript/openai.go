package transcript

import (
	"fmt"
	"io"
	"strings"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
)

// openaiDocument is a request to chat completions as it was kept.
type openaiDocument struct {
	Model    string      `json:"model"`
	Messages []codec.Raw `json:"messages"`
	Tools    codec.Raw   `json:"tools"`
}

// chatMessage is a message of chat completions.
type chatMessage struct {
	Role      string    `json:"role"`
	Content   codec.Raw `json:"content"`
	Calls     codec.Raw `json:"tool_calls,omitzero"`
	CallID    string    `json:"tool_call_id,omitzero"`
	Reasoning string    `json:"reasoning_content,omitzero"`
}

func (m chatMessage) raw() codec.Raw {
	if m.Content == nil {
		m.Content = codec.Raw("null")
	}
	if m.Calls.Kind() != '[' {
		m.Calls = nil
	}
	return must(m)
}

// parseOpenAI reads one conversation, or one a line where the name is that of lines.
func parseOpenAI(in input, r io.Reader) {
	if strings.HasSuffix(plain(in.path), ".jsonl") {
		parseOpenAILines(in, r)
		return
	}
	data, err := document(r)
	if err == nil {
		err = in.conversation(data, in.stem)
	}
	if err != nil {
		in.bad(err)
	}
}

// parseOpenAILines reads one conversation a line.
func parseOpenAILines(in input, r io.Reader) {
	in.eachLine(r, func(n int, data []byte) error {
		return in.conversation(data, fmt.Sprintf("%s-%d", in.stem, n))
	})
}

func (in input) conversation(data []byte, name string) error {
	var d openaiDocument
	var into any = &d
	if raw := codec.Raw(data); raw.Kind() == '[' {
		into = &d.Messages
	}
	if err := codec.Unmarshal(data, into); err != nil {
		return err
	}
	rec := &recording{name: in.named(name), format: events.OpenAI, model: modelNamed(d.Model)}
	if d.Tools.Kind() == '[' {
		rec.tools = d.Tools
	}
	rec.chat(in, d.Messages)
	rec.put(in)
	return nil
}

// chat adds messages of chat completions; a bad one is reported and left out.
func (r *recording) chat(in input, messages []codec.Raw) {
	for i, raw := range messages {
		m, err := events.OpenAI.Read(raw)
		if err != nil {
			in.bad(fmt.Errorf("messages[%d]: %w", i, err))
			continue
		}
		r.steps = append(r.steps, step{messages: []codec.Raw{raw}, answer: m.Role == dialect.RoleAssistant})
	}
}
