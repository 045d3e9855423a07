package strict

import (
	"encoding/json"
	"fmt"
	"slices"

	"compactd/internal/events/codec"
	"compactd/internal/events/traits"
	"compactd/internal/events/validate"
)

// Call is what an agent sends to a provider.
type Call struct {
	Provider, Model string
	Format          string // "" is that of the provider
	System, Tools   json.RawMessage
	Messages        []json.RawMessage
}

// Refusal is one breach of a rule.
type Refusal struct {
	Rule  string // of [Rules], or of package validate
	Index int    // of the message
	Text  string // the provider's
}

func (r Refusal) String() string {
	return fmt.Sprintf("messages.%d: %s (%s)", r.Index, r.Text, r.Rule)
}

// Rule is one that package validate cannot check, since it depends on more than a history.
type Rule struct {
	Name      string
	Providers []string
	Source    string // where they state it, and when it was read
	check     func(*request)
}

// Rules lists what is refused beside the rules of package validate.
func Rules() []Rule {
	return []Rule{
		{"media", []string{"anthropic", "bedrock"}, "platform.claude.com/docs/en/build-with-claude/vision, General limits, 2026-11", checkMedia},
		{"bound_thinking", []string{"anthropic", "bedrock", "openrouter"}, preservedThinking, checkBound},
	}
}

// Refuse returns every breach of the rules of a call's provider.
func Refuse(c Call) []Refusal {
	r := &request{call: c}
	for i, raw := range c.Messages {
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return []Refusal{{"json", i, "Input should be an object"}}
		}
		m.index = i
		m.read()
		r.messages = append(r.messages, m)
	}
	r.validate()
	for _, rule := range Rules() {
		if slices.Contains(rule.Providers, c.Provider) {
			r.rule = rule.Name
			rule.check(r)
		}
	}
	return r.refusals
}

// format is the dialect of the call's provider, unless the call names one.
func (c *Call) format() string {
	switch {
	case c.Format != "":
		return c.Format
	case c.Provider == "anthropic" || c.Provider == "bedrock":
		return c.Provider
	default:
		return "openai"
	}
}

// validate refuses what package validate does.
func (r *request) validate() {
	format := r.call.format()
	sent, at := r.joined(format)
	for _, v := range validate.Check(validate.Call{
		Format: format, Demands: traits.DemandsOf(format, r.call.Provider, r.call.Model), Messages: sent,
		Sent: true, System: codec.Raw(r.call.System), Tools: codec.Raw(r.call.Tools),
	}) {
		index := 0
		if v.Index >= 0 && v.Index < len(at) {
			index = at[v.Index]
		}
		r.refusals = append(r.refusals, Refusal{v.Rule, index, v.Text})
	}
}

// joined are the messages as the provider reads them, and which of the call's they begin with:
// Anthropic makes one message of neighbours of one role.
func (r *request) joined(format string) (out []codec.Raw, at []int) {
	var last message
	for i, m := range r.messages {
		if n := len(out); n > 0 && format == "anthropic" && m.Role == last.Role && m.Role != "system" {
			last.blocks = slices.Concat(last.blocks, m.blocks)
			content := make([]json.RawMessage, len(last.blocks))
			for k := range last.blocks {
				content[k] = last.blocks[k].raw
			}
			out[n-1], _ = json.Marshal(map[string]any{"role": m.Role, "content": content}) // of JSON
			continue
		}
		last = m
		out, at = append(out, codec.Raw(r.call.Messages[i])), append(at, i)
	}
	return out, at
}

// request is a call as a provider reads it.
type request struct {
	call     Call
	messages []message
	rule     string
	refusals []Refusal
}

func (r *request) refuse(index int, format string, args ...any) {
	r.refusals = append(r.refusals, Refusal{r.rule, index, fmt.Sprintf(format, args...)})
}

// message is one of any of the two wire formats.
type message struct {
	Role             string            `json:"role"`
	Content          json.RawMessage   `json:"content"`
	ToolCalls        *[]toolCall       `json:"tool_calls"`
	ToolCallID       string            `json:"tool_call_id"`
	ReasoningContent *string           `json:"reasoning_content"`
	Refusal          *string           `json:"refusal"`
	Audio            json.RawMessage   `json:"audio"`
	Details          []json.RawMessage `json:"reasoning_details"` // of OpenRouter

	index  int
	blocks []block
	text   bool // the content is a string
}

type toolCall struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Function json.RawMessage `json:"function"`
	Custom   json.RawMessage `json:"custom"`
}

// block is one of a content that is an array, or the text of one that is a string.
type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	ID           string          `json:"id"`
	ToolUseID    string          `json:"tool_use_id"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	CacheControl json.RawMessage `json:"cache_control"`

	raw json.RawMessage
}

func (m *message) read() {
	var text string
	if json.Unmarshal(m.Content, &text) == nil && m.has() {
		m.text, m.blocks = true, []block{{Type: "text", Text: text}}
		m.blocks[0].raw, _ = json.Marshal(map[string]string{"type": "text", "text": text})
		return
	}
	var raws []json.RawMessage
	_ = json.Unmarshal(m.Content, &raws)
	for _, raw := range raws {
		b := block{raw: raw}
		_ = json.Unmarshal(raw, &b) // of another type, which the rules then refuse
		b.converse()
		m.blocks = append(m.blocks, b)
	}
}

// has reports whether there is a content.
func (m *message) has() bool { return len(m.Content) > 0 && string(m.Content) != "null" }

func (b *block) thinks() bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }

// converse reads a block of the Converse API, which is named by its one member.
func (b *block) converse() {
	var in struct {
		ToolUse, ToolResult *struct{}
		Text                *string
		ReasoningContent    *struct {
			ReasoningText   *struct{ Signature string }
			RedactedContent string
		}
	}
	if b.Type != "" || json.Unmarshal(b.raw, &in) != nil {
		return
	}
	switch {
	case in.Text != nil:
		b.Type, b.Text = "text", *in.Text
	case in.ToolUse != nil:
		b.Type = "tool_use"
	case in.ToolResult != nil:
		b.Type = "tool_result"
	case in.ReasoningContent == nil:
	case in.ReasoningContent.ReasoningText != nil:
		b.Type, b.Signature = "thinking", in.ReasoningContent.ReasoningText.Signature
	default:
		b.Type, b.Data = "redacted_thinking", in.ReasoningContent.RedactedContent
	}
}
