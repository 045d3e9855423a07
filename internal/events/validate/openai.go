package validate

import "compactd/internal/events/codec"

type openaiShape struct {
	bad       bool
	role      string
	content   content
	name      string
	refusal   codec.Kind
	audio     codec.Kind
	reasoning codec.Kind // of reasoning or reasoning_content, which other providers have

	hasCalls   bool
	calls      []openaiCallShape
	function   openaiCallName
	toolCallID string
}

type openaiCallShape struct {
	id               string
	function, custom openaiCallName
}

// openaiCallName is what is called; the zero one is absent.
type openaiCallName struct {
	is               bool
	name             string
	arguments, input words
}

func readOpenAI(raw codec.Raw) (m openaiShape) {
	m.bad = readMessage(raw, func(r *codec.Strict, key []byte) {
		switch string(key) {
		case "role":
			m.role = r.String()
		case "content":
			m.content = readContent(r, func() { r.Skip() })
		case "name":
			m.name = r.String()
		case "refusal":
			m.refusal = r.Skip()
		case "audio":
			m.audio = r.Skip()
		case "reasoning", "reasoning_content":
			if k := r.Skip(); k == '"' {
				m.reasoning = k
			}
		case "tool_calls":
			m.calls = nil
			m.hasCalls = r.Array(func() { m.calls = append(m.calls, readOpenAICall(r)) })
		case "function_call":
			m.function = readOpenAIName(r)
		case "tool_call_id":
			m.toolCallID = r.String()
		default:
			r.Skip()
		}
	})
	return m
}

func readOpenAICall(r *codec.Strict) (call openaiCallShape) {
	r.Object(func(key []byte) {
		switch string(key) {
		case "id":
			call.id = r.String()
		case "function":
			call.function = readOpenAIName(r)
		case "custom":
			call.custom = readOpenAIName(r)
		default:
			r.Skip()
		}
	})
	return call
}

func readOpenAIName(r *codec.Strict) (n openaiCallName) {
	n.is = r.Object(func(key []byte) {
		switch string(key) {
		case "name":
			n.name = r.String()
		case "arguments":
			n.arguments = readWords(r)
		case "input":
			n.input = readWords(r)
		default:
			r.Skip()
		}
	})
	return n
}

// functionID is before the name of a call of the days of functions, which has no id: no tool
// call's id begins so.
const functionID = "function_call "

func (c *checker) openai(messages []codec.Raw) {
	var calls lastCalls
	for i, raw := range messages {
		m := readOpenAI(raw)
		if !c.whole(i, m.bad) {
			continue
		}
		c.openaiContent(i, m)
		if m.role == "tool" || m.role == "function" {
			c.openaiResult(i, m, &calls)
			continue
		}
		c.allAnswered(&calls)
		calls = lastCalls{index: i, ids: c.openaiIDs(i, m), answered: map[string]bool{}}
	}
	if c.sent {
		c.allAnswered(&calls)
	}
}

// openaiContent checks what does not depend on other messages. An empty string
// is a content to OpenAI.
func (c *checker) openaiContent(i int, m openaiShape) {
	kind, absent := m.content.kind, m.content.absent()
	switch m.role {
	case "assistant":
		absent = absent || m.content.empty
		more := m.hasCalls || m.function.is || m.audio == '{' || m.refusal == '"' || m.reasoning == '"'
		if absent && !more {
			c.report("empty_content", i, "the assistant has neither content nor a call")
		}
	case "system", "developer", "user", "tool", "function":
		if absent {
			c.report("bad_shape", i, "there is no content")
		}
		if m.hasCalls || m.function.is {
			c.report("bad_shape", i, "only an assistant calls tools")
		}
		if m.content.empty {
			c.report("bad_shape", i, "the content is an empty array")
		}
	default:
		c.report("bad_shape", i, "the role is unknown")
	}
	if !absent && kind != '"' && kind != '[' {
		c.report("bad_shape", i, "the content is neither string nor array")
	}
}

// openaiIDs returns the ids of an assistant's calls.
func (c *checker) openaiIDs(i int, m openaiShape) (out ids) {
	if m.function.is {
		out.add(functionID + m.function.name)
	}
	if m.hasCalls && len(m.calls) == 0 {
		c.report("bad_shape", i, "tool_calls is empty")
	}
	for _, call := range m.calls {
		function := call.function.name != "" && call.function.arguments != noText
		custom := call.custom.name != "" && call.custom.input != noText
		switch {
		case call.id == "" || !function && !custom:
			c.report("bad_shape", i, "a call lacks id, name or arguments")
		case out.has(call.id):
			c.report("duplicate_call_id", i, "two calls have the same id")
		default:
			out.add(call.id)
		}
	}
	return out
}

func (c *checker) openaiResult(i int, m openaiShape, calls *lastCalls) {
	id := m.toolCallID
	if m.role == "function" {
		id = functionID + m.name
	}
	if id == "" || id == functionID {
		c.report("bad_shape", i, "a result names no call")
		return
	}
	c.result(i, id, calls)
}
