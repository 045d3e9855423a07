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
	id      string     // of an answer of Claude Code, which has it in many lines
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
	lines := map[string][]*line{}
	var order []string
	eachValue(in, r, func(n int, l *line) error {
		if !events.ValidSession(l.Session) {
			return fmt.Errorf("session is not 1 to %d of A-Z a-z 0-9 _ -", events.MaxIDLen)
		}
		if lines[l.Session] == nil {
			order = append(order, l.Session)
		}
		l.number = n
		lines[l.Session] = append(lines[l.Session], l)
		return nil
	})
	for _, name := range order {
		r := recordingOf(lines[name])
		r.name = in.named(name)
		if w := lines[name][0].Meta.ContextWindow; w > 0 && w <= events.MaxTokens {
			r.stated = w
		}
		r.take(in, lines[name])
		in.take(r.session(in))
	}
}

// recordingOf is an empty recording in the dialect and of the model of some lines: sessions of Claude models
// go as anthropic, all others as openai.
func recordingOf(lines []*line) *recording {
	first := ""
	for _, l := range lines {
		if !validModel(l.Model) {
			continue
		}
		if strings.HasPrefix(l.Model, claudePrefix) {
			return &recording{format: events.Anthropic, model: modelNamed(l.Model)}
		}
		first = cmp.Or(first, l.Model)
	}
	return &recording{format: events.OpenAI, model: modelNamed(first)}
}

// take takes the lines of a session; a bad one is reported and left out.
func (r *recording) take(in input, lines []*line) {
	for _, l := range lines {
		switch {
		case l.Kind == "compaction":
			r.steps = append(r.steps, step{at: l.TS, compaction: true, summary: summaryOf(l)})
		case l.Kind == "message" && l.Meta.Summary != nil:
			if n := len(r.steps); n > 0 && r.steps[n-1].compaction {
				r.steps[n-1].summary = summaryOf(l)
			}
		case l.Kind == "message":
			messages := l.messages(r.format, in.thinking)
			if _, err := r.format.ReadAll(messages); err != nil {
				in.bad(atLine(l.number, err))
				continue
			}
			r.steps = append(r.steps, step{at: l.TS, messages: messages, answer: l.Role == "assistant", model: l.Model, usage: l.Usage})
		}
	}
}

// summaryOf is the text of a summary that the recorded agent wrote: that of its message, or
// what the line of the compaction states.
func summaryOf(l *line) string {
	var texts []string
	for _, b := range l.Content {
		texts = append(texts, b.Text)
	}
	if text, ok := codec.Text(l.Meta.Summary); ok {
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

// messages are those of a line in the dialect. Anthropic's has the blocks as recorded, without thinking that
// has no signature: the provider would refuse it.
func (l *line) messages(f events.Format, thinking bool) []codec.Raw {
	if f != events.Anthropic {
		return openaiMessages(l, thinking)
	}
	content := []codec.Raw{}
	for _, c := range l.Content {
		switch {
		case c.Type != "thinking" || c.Signature != "":
			content = append(content, c.raw)
		case thinking:
			content = append(content, object("type", c.Type, "thinking", c.Text))
		}
	}
	return []codec.Raw{object("role", l.Role, "content", content)}
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
func openaiMessages(l *line, thinking bool) []codec.Raw {
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
