package validate

import "compactd/internal/events/codec"

type openaiMessage struct {
	Role      string                    `json:"role"`
	Content   codec.Content[codec.Type] `json:"content"`
	Name      string                    `json:"name"`
	Refusal   codec.Type                `json:"refusal"`
	Audio     codec.Type                `json:"audio"`
	Reasoning codec.Type                `json:"reasoning"` // of other providers
	Reasoned  codec.Type                `json:"reasoning_content"`

	Calls      []openaiCall            `json:"tool_calls"`
	Function   codec.Inner[openaiName] `json:"function_call"`
	ToolCallID string                  `json:"tool_call_id"`
}

type openaiCall struct {
	ID       string     `json:"id"`
	Function openaiName `json:"function"`
	Custom   openaiName `json:"custom"`
}

// openaiName is what is called.
type openaiName struct {
	Name      string      `json:"name"`
	Arguments codec.Words `json:"arguments"`
	Input     codec.Words `json:"input"`
}

// functionID is before the name of a call of the days of functions, which has no id: no tool
// call's id begins so.
const functionID = "function_call "

func (c *checker) openai(messages []codec.Raw) {
	var calls lastCalls
	for i, raw := range messages {
		read := codec.ReadStrict[openaiMessage](raw)
		m := &read.Of
		if !c.whole(i, read.Bad) {
			continue
		}
		c.openaiContent(i, m)
		if m.Role == "tool" || m.Role == "function" {
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
func (c *checker) openaiContent(i int, m *openaiMessage) {
	kind, calls := m.Content.Type, m.Calls != nil || m.Function.Is()
	absent := kind == 0 || kind == 'n'
	switch m.Role {
	case "assistant":
		absent = absent || m.Content.Empty()
		more := calls || m.Audio == '{' || m.Refusal == '"' || m.Reasoning == '"' || m.Reasoned == '"'
		if absent && !more {
			c.report("empty_content", i, "the assistant has neither content nor a call")
		}
	case "system", "developer", "user", "tool", "function":
		if absent {
			c.report("bad_shape", i, "there is no content")
		}
		if calls {
			c.report("bad_shape", i, "only an assistant calls tools")
		}
		if m.Content.Empty() {
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
func (c *checker) openaiIDs(i int, m *openaiMessage) (out ids) {
	if m.Function.Is() {
		out.add(functionID + m.Function.Of.Name)
	}
	if m.Calls != nil && len(m.Calls) == 0 {
		c.report("bad_shape", i, "tool_calls is empty")
	}
	for _, call := range m.Calls {
		function := call.Function.Name != "" && call.Function.Arguments > codec.Null
		custom := call.Custom.Name != "" && call.Custom.Input > codec.Null
		switch {
		case call.ID == "" || !function && !custom:
			c.report("bad_shape", i, "a call lacks id, name or arguments")
		case out.has(call.ID):
			c.report("duplicate_call_id", i, "two calls have the same id")
		default:
			out.add(call.ID)
		}
	}
	return out
}

func (c *checker) openaiResult(i int, m *openaiMessage, calls *lastCalls) {
	id := m.ToolCallID
	if m.Role == "function" {
		id = functionID + m.Name
	}
	if id == "" || id == functionID {
		c.report("bad_shape", i, "a result names no call")
		return
	}
	c.result(i, id, calls)
}
