package transcript

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// line is one line of a transcript.
type line struct {
	number  int
	Session string     `json:"session"`
	Kind    string     `json:"kind"`
	TS      time.Time  `json:"ts"`
	Role    string     `json:"role"`
	Content []block    `json:"content"`
	Model   string     `json:"model"`
	Usage   *lineUsage `json:"usage"`
	Meta    struct {
		Summary       codec.Raw `json:"summary"`
		ContextWindow int64     `json:"context_window"`
	} `json:"meta"`
}

// block is one content block; its members are those of Anthropic.
type block struct {
	raw       codec.Raw
	Type      string    `json:"type"`
	Text      string    `json:"text"`
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Input     codec.Raw `json:"input"`
	ToolUseID string    `json:"tool_use_id"`
	Content   codec.Raw `json:"content"`
	Thinking  string    `json:"thinking"`
	Signature string    `json:"signature"`
}

// UnmarshalJSON keeps the block's own bytes beside its fields.
func (b *block) UnmarshalJSON(data []byte) error {
	type plain block
	if err := codec.Unmarshal(data, (*plain)(b)); err != nil {
		return err
	}
	b.raw = slices.Clone(data)
	return nil
}

// parseCompactd reads lines of any number of sessions.
func parseCompactd(in input, r io.Reader) {
	byName := map[string]*sessionLines{}
	var order []*sessionLines
	eachValue(in, r, func(n int, l *line) error {
		if !events.ValidSession(l.Session) {
			return fmt.Errorf("session is not 1 to %d of A-Z a-z 0-9 _ -", events.MaxIDLen)
		}
		s := byName[l.Session]
		if s == nil {
			s = &sessionLines{name: l.Session, thinking: in.thinking}
			byName[l.Session] = s
			order = append(order, s)
		}
		l.number = n
		s.lines = append(s.lines, *l)
		return nil
	})
	for _, s := range order {
		in.take(s.recording(in).session(in))
	}
}

// sessionLines collects the lines of one session.
type sessionLines struct {
	name     string
	lines    []line
	thinking bool // without a signature stays
}

func (s *sessionLines) recording(in input) *recording {
	r := &recording{name: in.named(s.name)}
	r.format, r.model = s.detect()
	if w := s.lines[0].Meta.ContextWindow; w > 0 && w <= events.MaxTokens {
		r.stated = w
	}
	for _, l := range s.lines {
		switch {
		case l.Kind == "compaction":
			r.steps = append(r.steps, step{at: l.TS, compaction: true, summary: summaryOf(l)})
		case l.Kind == "message" && l.Meta.Summary != nil:
			if n := len(r.steps); n > 0 && r.steps[n-1].compaction {
				r.steps[n-1].summary = summaryOf(l)
			}
		case l.Kind == "message":
			messages := s.messages(r.format, l)
			if _, err := r.format.ReadAll(messages); err != nil {
				in.bad(atLine(l.number, err))
				continue
			}
			r.steps = append(r.steps, step{at: l.TS, messages: messages, answer: l.Role == "assistant", model: l.Model, usage: l.Usage})
		}
	}
	return r
}

// summaryOf is the text of a summary that the recorded agent wrote: that of its message, or
// what the line of the compaction states.
func summaryOf(l line) string {
	var texts []string
	for _, b := range l.Content {
		texts = append(texts, b.Text)
	}
	if text, ok := codec.Text(l.Meta.Summary); ok {
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

// detect finds dialect and model: sessions of Claude models go as anthropic, all others as
// openai.
func (s *sessionLines) detect() (events.Format, events.Model) {
	first := ""
	for _, l := range s.lines {
		if !validModel(l.Model) {
			continue
		}
		if strings.HasPrefix(l.Model, claudePrefix) {
			return events.Anthropic, modelNamed(l.Model)
		}
		first = cmp.Or(first, l.Model)
	}
	return events.OpenAI, modelNamed(first)
}

func (s *sessionLines) messages(f events.Format, l line) []codec.Raw {
	if f == events.Anthropic {
		return []codec.Raw{s.anthropicMessage(l)}
	}
	return openaiMessages(l, s.thinking)
}

// anthropicMessage keeps the blocks as recorded. Thinking without a signature
// goes: the provider would refuse it.
func (s *sessionLines) anthropicMessage(l line) codec.Raw {
	content := []codec.Raw{}
	for _, c := range l.Content {
		switch {
		case c.Type != "thinking" || c.Signature != "":
			content = append(content, c.raw)
		case s.thinking:
			content = append(content, object("type", c.Type, "thinking", c.Text))
		}
	}
	return object("role", l.Role, "content", content)
}

type openaiCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// openaiMessages makes a tool message of each result, and one message of the rest.
func openaiMessages(l line, thinking bool) []codec.Raw {
	var out []codec.Raw
	var text []string
	var calls []openaiCall
	m := chatMessage{Role: l.Role}
	for _, b := range l.Content {
		switch b.Type {
		case "text":
			text = append(text, b.Text)
		case "thinking":
			if thinking {
				m.Reasoning += b.Text
			}
		case "tool_use":
			c := openaiCall{ID: b.ID, Type: "function"}
			c.Function.Name, c.Function.Arguments = b.Name, string(b.Input)
			calls = append(calls, c)
		case "tool_result":
			s, ok := codec.Text(b.Content)
			if !ok {
				s = string(b.Content)
			}
			out = append(out, chatMessage{Role: "tool", Content: must(s), CallID: b.ToolUseID}.raw())
		}
	}
	if joined := strings.Join(text, "\n"); joined != "" || len(calls) == 0 && len(out) == 0 {
		m.Content = must(joined)
	}
	if len(calls) > 0 {
		m.Calls = must(calls)
	}
	if m.Content != nil || m.Calls != nil {
		out = append(out, m.raw())
	}
	return out
}
