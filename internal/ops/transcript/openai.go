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
func parseOpenAI(in input, r io.Reader) (out []Session) {
	if strings.HasSuffix(plain(in.path), ".jsonl") {
		return parseOpenAILines(in, r)
	}
	data, err := document(r)
	if err == nil {
		out, err = in.conversation(data, in.stem)
	}
	if err != nil {
		in.bad(err)
	}
	return out
}

// parseOpenAILines reads one conversation a line.
func parseOpenAILines(in input, r io.Reader) (out []Session) {
	in.eachLine(r, func(n int, data []byte) error {
		s, err := in.conversation(data, fmt.Sprintf("%s-%d", in.stem, n))
		out = append(out, s...)
		return err
	})
	return out
}

func (in input) conversation(data []byte, name string) ([]Session, error) {
	var d openaiDocument
	if raw := codec.Raw(data); raw.Kind() == '[' {
		if err := codec.Unmarshal(data, &d.Messages); err != nil {
			return nil, err
		}
	} else if err := codec.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	rec := &recording{name: in.named(name), format: events.OpenAI, model: modelNamed(d.Model)}
	if d.Tools.Kind() == '[' {
		rec.tools = d.Tools
	}
	rec.chat(in, d.Messages)
	return rec.sessions(in), nil
}

// sessions is the one session, unless it has nothing.
func (r *recording) sessions(in input) []Session {
	s := r.session(in)
	if len(s.Turns) == 0 {
		return nil
	}
	return []Session{s}
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
