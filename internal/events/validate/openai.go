package validate

import (
	"slices"

	"compactd/internal/events/codec"
)

type openaiShape struct {
	Role    string    `json:"role"`
	Content codec.Raw `json:"content"`
	Name    string    `json:"name"`
	Refusal codec.Raw `json:"refusal"`
	Audio   codec.Raw `json:"audio"`

	// Those of other providers than OpenAI
	Reasoning        codec.Raw          `json:"reasoning"`
	ReasoningContent codec.Raw          `json:"reasoning_content"`
	ToolCalls        *[]openaiCallShape `json:"tool_calls"`
	FunctionCall     *openaiCallName    `json:"function_call"`
	ToolCallID       string             `json:"tool_call_id"`
}

type openaiCallShape struct {
	ID       string          `json:"id"`
	Function *openaiCallName `json:"function"`
	Custom   *openaiCallName `json:"custom"`
}

type openaiCallName struct {
	Name      string  `json:"name"`
	Arguments *string `json:"arguments"`
	Input     *string `json:"input"`
}

// openaiCalls are the calls of the last assistant message. A call of the days of
// functions has no id and goes by its name.
type openaiCalls struct {
	index    int
	ids      []string
	answered map[string]bool
}

const functionID = "function_call " // no tool call's id begins so

func (c *checker) openai(messages []codec.Raw) {
	var calls openaiCalls
	for i, raw := range messages {
		var m openaiShape
		if !c.parse(i, raw, &m) {
			continue
		}
		c.openaiContent(i, m)
		if m.Role == "tool" || m.Role == "function" {
			c.openaiResult(i, m, calls)
			continue
		}
		c.openaiAnswered(calls)
		calls = openaiCalls{index: i, ids: c.openaiIDs(i, m), answered: map[string]bool{}}
	}
}

// openaiContent checks what does not depend on other messages. An empty string
// is a content to OpenAI.
func (c *checker) openaiContent(i int, m openaiShape) {
	kind := m.Content.Kind()
	absent := kind == 0 || kind == 'n'
	switch m.Role {
	case "assistant":
		if kind == '[' && len(list(m.Content)) == 0 {
			absent = true
		}
		more := m.ToolCalls != nil || m.FunctionCall != nil || m.Audio.Kind() == '{' || m.Refusal.Kind() == '"' || m.Reasoning.Kind() == '"' || m.ReasoningContent.Kind() == '"'
		if absent && !more {
			c.report("empty_content", i, "the assistant has neither content nor a call")
		}
	case "system", "developer", "user", "tool", "function":
		if absent {
			c.report("bad_shape", i, "there is no content")
		}
		if m.ToolCalls != nil || m.FunctionCall != nil {
			c.report("bad_shape", i, "only an assistant calls tools")
		}
		if kind == '[' && len(list(m.Content)) == 0 {
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
func (c *checker) openaiIDs(i int, m openaiShape) (ids []string) {
	if m.FunctionCall != nil {
		ids = append(ids, functionID+m.FunctionCall.Name)
	}
	if m.ToolCalls == nil {
		return ids
	}
	if len(*m.ToolCalls) == 0 {
		c.report("bad_shape", i, "tool_calls is empty")
	}
	for _, call := range *m.ToolCalls {
		function := call.Function != nil && call.Function.Name != "" && call.Function.Arguments != nil
		custom := call.Custom != nil && call.Custom.Name != "" && call.Custom.Input != nil
		switch {
		case call.ID == "" || !function && !custom:
			c.report("bad_shape", i, "a call lacks id, name or arguments")
		case slices.Contains(ids, call.ID):
			c.report("duplicate_call_id", i, "two calls have the same id")
		default:
			ids = append(ids, call.ID)
		}
	}
	return ids
}

func (c *checker) openaiResult(i int, m openaiShape, calls openaiCalls) {
	id := m.ToolCallID
	if m.Role == "function" {
		id = functionID + m.Name
	}
	switch {
	case id == "" || id == functionID:
		c.report("bad_shape", i, "a result names no call")
	case !slices.Contains(calls.ids, id):
		c.report("orphan_result", i, "the assistant before has no call of this id")
	case calls.answered[id]:
		c.report("duplicate_result", i, "the call has a result already")
	default:
		calls.answered[id] = true
	}
}

// openaiAnswered is called when another role follows: at the end of a history
// calls may be open.
func (c *checker) openaiAnswered(calls openaiCalls) {
	for _, id := range calls.ids {
		if !calls.answered[id] {
			c.report("call_answered", calls.index, "another role speaks before the result of a call")
		}
	}
}
