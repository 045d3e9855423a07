package strict

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Call is what an agent sends to a provider.
type Call struct {
	Provider, Model string
	System, Tools   json.RawMessage
	Messages        []json.RawMessage
}

// Refusal is one breach of a rule.
type Refusal struct {
	Rule  string // of [Rules]
	Index int    // of the message
	Text  string // the provider's
}

func (r Refusal) String() string {
	return fmt.Sprintf("messages.%d: %s (%s)", r.Index, r.Text, r.Rule)
}

// Rule is one demand of some providers.
type Rule struct {
	Name      string
	Providers []string
	Source    string // where they state it, and when it was read
	check     func(*request)
}

// Rules lists what is refused.
func Rules() []Rule { return slices.Concat(anthropicRules, converseRules, openaiRules, chatRules) }

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
	for _, rule := range Rules() {
		if slices.Contains(rule.Providers, c.Provider) {
			r.rule = rule.Name
			rule.check(r)
		}
	}
	return r.refusals
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

// ids lists those of the blocks of a type.
func (m *message) ids(kind string) (out []string) {
	for _, b := range m.blocks {
		switch {
		case b.Type != kind:
		case kind == "tool_result":
			out = append(out, b.ToolUseID)
		default:
			out = append(out, b.ID)
		}
	}
	return out
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// only reports whether a text is nothing but characters of an alphabet.
func only(s, alphabet string) bool { return s != "" && strings.Trim(s, alphabet) == "" }

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	names   = letters + "_-"
)
