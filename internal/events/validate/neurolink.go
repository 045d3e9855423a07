package validate

import (
	"cmp"

	"compactd/internal/events/codec"
)

type neurolinkShape struct {
	bad                         bool
	role                        string
	content                     codec.Kind
	toolCallID, snakeID, metaID string
}

func readNeuroLink(raw codec.Raw) (m neurolinkShape) {
	m.bad = readMessage(raw, func(r *codec.Strict, key []byte) {
		switch string(key) {
		case "role":
			m.role = r.String()
		case "content":
			m.content = r.Skip()
		case "toolCallId":
			m.toolCallID = r.String()
		case "tool_call_id":
			m.snakeID = r.String()
		case "metadata":
			m.metaID = readMetadata(r)
		default:
			r.Skip()
		}
	})
	return m
}

// readMetadata returns the id of the call in a message's metadata; one of another type is none.
func readMetadata(r *codec.Strict) (id string) {
	if r.Kind() != '{' {
		r.Skip()
		return ""
	}
	readObject(r, func(r *codec.Strict, key []byte) {
		if string(key) == "toolCallId" {
			id = r.String()
			return
		}
		r.Skip()
	})
	return id
}

func (c *checker) neurolink(messages []codec.Raw) {
	var open openCalls // of the tool messages since the last other role
	tools := false     // the message before is one
	for i, raw := range messages {
		m := readNeuroLink(raw)
		if !c.whole(i, m.bad) {
			continue
		}
		switch m.role {
		case "tool_call":
			open.add(openCall{neurolinkID(m), i})
		case "tool_result":
			id := neurolinkID(m)
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
		tools = m.role == "tool_call" || m.role == "tool_result"
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

func (c *checker) neurolinkWords(i int, m neurolinkShape) {
	if m.role != "user" && m.role != "assistant" && m.role != "system" {
		c.report("bad_shape", i, "the role is unknown")
	}
	if k := m.content; k != '"' && k != '[' && k != '{' {
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

func neurolinkID(m neurolinkShape) string { return cmp.Or(m.toolCallID, m.snakeID, m.metaID) }
