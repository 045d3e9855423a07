package validate

import (
	"slices"

	"compactd/internal/events/codec"
)

type neurolinkShape struct {
	Role       string    `json:"role"`
	Content    codec.Raw `json:"content"`
	ToolCallID string    `json:"toolCallId"`
	SnakeID    string    `json:"tool_call_id"`
	Metadata   codec.Raw `json:"metadata"`
}

type neurolinkMetaShape struct {
	ToolCallID string `json:"toolCallId"`
}

// neurolinkCall is a call without a result so far; the id may be "".
type neurolinkCall struct {
	index int
	id    string
}

func (c *checker) neurolink(messages []codec.Raw) {
	var open []neurolinkCall // of the tool messages since the last other role
	tools := false           // the message before is one
	for i, raw := range messages {
		var m neurolinkShape
		if !c.parse(i, raw, &m) {
			continue
		}
		switch m.Role {
		case "tool_call":
			open = append(open, neurolinkCall{i, neurolinkID(m)})
		case "tool_result":
			id := neurolinkID(m)
			switch at := answers(open, id); {
			case at >= 0:
				open = slices.Delete(open, at, at+1)
			case id != "" || !tools: // without id, it belongs to the message before it
				c.report("orphan_result", i, "no call before it is without a result")
			}
		default:
			c.neurolinkWords(i, m)
			for _, call := range open {
				c.report("call_answered", call.index, "no result among the tool messages after it")
			}
			open = nil
		}
		tools = m.Role == "tool_call" || m.Role == "tool_result"
	}
}

func (c *checker) neurolinkWords(i int, m neurolinkShape) {
	if m.Role != "user" && m.Role != "assistant" && m.Role != "system" {
		c.report("bad_shape", i, "the role is unknown")
	}
	if k := m.Content.Kind(); k != '"' && k != '[' && k != '{' {
		c.report("bad_shape", i, "there is no content")
	}
}

// answers returns which open call a result of that id answers, -1 for none: the
// one of the same id, else the first where one of the two has no id.
func answers(open []neurolinkCall, id string) int {
	if i := slices.IndexFunc(open, func(o neurolinkCall) bool { return o.id == id }); i >= 0 {
		return i
	}
	return slices.IndexFunc(open, func(o neurolinkCall) bool { return o.id == "" || id == "" })
}

func neurolinkID(m neurolinkShape) string {
	var meta neurolinkMetaShape
	if m.Metadata.Kind() == '{' {
		_ = codec.Unmarshal(m.Metadata, &meta) // an id of another type is none
	}
	switch {
	case m.ToolCallID != "":
		return m.ToolCallID
	case m.SnakeID != "":
		return m.SnakeID
	default:
		return meta.ToolCallID
	}
}
