package validate

import (
	"cmp"

	"compactd/internal/events/codec"
)

type neurolinkMessage struct {
	Role       string                          `json:"role"`
	Content    codec.Type                      `json:"content"`
	ToolCallID string                          `json:"toolCallId"`
	SnakeID    string                          `json:"tool_call_id"`
	Metadata   codec.Strict[neurolinkMetadata] `json:"metadata"` // which need not be one
}

type neurolinkMetadata struct {
	ToolCallID string `json:"toolCallId"`
}

func (m *neurolinkMessage) id() string {
	return cmp.Or(m.ToolCallID, m.SnakeID, m.Metadata.Of.ToolCallID)
}

func (c *checker) neurolink(messages []codec.Raw) {
	var open openCalls // of the tool messages since the last other role
	tools := false     // the message before is one
	for i, raw := range messages {
		read := codec.ReadStrict[neurolinkMessage](raw)
		m := &read.Of
		if !c.whole(i, read.Bad) {
			continue
		}
		switch m.Role {
		case "tool_call":
			open.add(openCall{m.id(), i})
		case "tool_result":
			id := m.id()
			switch {
			case answers(&open, id):
			case id != "" || !tools: // without id, it belongs to the message before it
				c.report("orphan_result", i, "no call before it is without a result")
			}
		default:
			c.neurolinkWords(i, m)
			c.neurolinkAnswered(&open)
			open = openCalls{}
		}
		tools = m.Role == "tool_call" || m.Role == "tool_result"
	}
	if c.sent {
		c.neurolinkAnswered(&open)
	}
}

func (c *checker) neurolinkAnswered(open *openCalls) {
	for _, call := range open.open() {
		c.report("call_answered", call.index, "no result among the tool messages after it")
	}
}

func (c *checker) neurolinkWords(i int, m *neurolinkMessage) {
	if m.Role != "user" && m.Role != "assistant" && m.Role != "system" {
		c.report("bad_shape", i, "the role is unknown")
	}
	if k := m.Content; k != '"' && k != '[' && k != '{' {
		c.report("bad_shape", i, "there is no content")
	}
}

// answers takes the call away that a result of an id answers, and reports whether there is one: the
// one of the same id, or the first where one of the two has no id.
func answers(open *openCalls, id string) bool {
	if id == "" {
		return open.answer(id) || open.answerAny()
	}
	return open.answer(id) || open.answer("")
}
