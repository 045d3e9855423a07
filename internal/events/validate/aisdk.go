package validate

import (
	"slices"

	"compactd/internal/events/codec"
)

// The rules of ModelMessage: the schemas of ai 6.0, src/prompt/message.ts and
// content-part.ts, and the check for missing results in
// convert-to-language-model-prompt.ts, November 2026. Providers behind the SDK demand that
// results follow their calls directly.

type aiSDKShape struct {
	bad     bool
	role    string
	content content
	parts   []aiSDKPartShape
}

type aiSDKPartShape struct {
	bad          bool
	kind         string
	text         words
	callID, tool string
	input        bool // or args
	output       bool // of a type, or a result
	own          bool
	approvalID   string
}

func readAISDK(raw codec.Raw) (m aiSDKShape) {
	m.bad = readMessage(raw, func(r *codec.Strict, key []byte) {
		switch string(key) {
		case "role":
			m.role = r.String()
		case "content":
			m.parts = nil
			m.content = readContent(r, func() { m.parts = append(m.parts, readAISDKPart(r)) })
		default:
			r.Skip()
		}
	})
	return m
}

func readAISDKPart(r *codec.Strict) (p aiSDKPartShape) {
	p.bad = readObject(r, func(r *codec.Strict, key []byte) {
		switch string(key) {
		case "type":
			p.kind = r.String()
		case "text":
			p.text = readWords(r)
		case "toolCallId":
			p.callID = r.String()
		case "toolName":
			p.tool = r.String()
		case "input", "args":
			p.input = true
			r.Skip()
		case "output":
			p.output = readAISDKOutput(r) || p.output
		case "result":
			p.output = true
			r.Skip()
		case "providerExecuted":
			p.own = r.Bool()
		case "approvalId":
			p.approvalID = r.String()
		default:
			r.Skip()
		}
	})
	return p
}

// readAISDKOutput reports whether an output has a type.
func readAISDKOutput(r *codec.Strict) bool {
	if r.Kind() != '{' {
		r.Skip()
		return false
	}
	kind := ""
	bad := readObject(r, func(r *codec.Strict, key []byte) {
		if string(key) == "type" {
			kind = r.String()
			return
		}
		r.Skip()
	})
	return !bad && kind != ""
}

// aiSDKCalls are the calls of the last assistant message, and the call of each approval.
type aiSDKCalls struct {
	lastCalls
	approvals map[string]string
}

// aiSDKParts are the types of parts that a role may have.
var aiSDKParts = map[string][]string{
	"user":      {"text", "image", "file"},
	"assistant": {"text", "file", "reasoning", "reasoning-file", "custom", "tool-call", "tool-result", "tool-approval-request"},
	"tool":      {"tool-result", "tool-approval-response"},
}

func (c *checker) aiSDK(messages []codec.Raw) {
	var calls aiSDKCalls
	for i, raw := range messages {
		m := readAISDK(raw)
		if !c.whole(i, m.bad) {
			continue
		}
		parts := c.aiSDKContent(i, m)
		if m.role == "tool" {
			for _, p := range parts {
				c.aiSDKResult(i, p, &calls)
			}
			continue
		}
		c.allAnswered(&calls.lastCalls)
		calls = aiSDKCalls{lastCalls{index: i, answered: map[string]bool{}}, map[string]string{}}
		for _, p := range parts {
			c.aiSDKCall(i, p, &calls)
		}
	}
	if c.sent {
		c.allAnswered(&calls.lastCalls)
	}
}

func (c *checker) aiSDKContent(i int, m aiSDKShape) (out []aiSDKPartShape) {
	types, known := aiSDKParts[m.role]
	switch kind := m.content.kind; {
	case m.role == "system" && kind == '"', known && m.role != "tool" && kind == '"':
		return nil
	case !known || kind != '[':
		c.report("bad_shape", i, "the role is unknown, or its content is of another type")
		return nil
	}
	if m.content.empty {
		c.report("empty_content", i, "the content has no parts")
	}
	for _, p := range m.parts {
		switch {
		case !c.whole(i, p.bad):
		case !slices.Contains(types, p.kind), p.kind == "text" && p.text == noText:
			c.report("bad_shape", i, "a part has a type that its role has not, or no text")
		default:
			out = append(out, p)
		}
	}
	return out
}

func (c *checker) aiSDKCall(i int, p aiSDKPartShape, calls *aiSDKCalls) {
	switch {
	case p.kind == "tool-approval-request":
		calls.approvals[p.approvalID] = p.callID
	case p.kind != "tool-call":
	case p.callID == "" || p.tool == "" || !p.input:
		c.report("bad_shape", i, "a tool-call lacks id, name or input")
	case p.own:
	case calls.ids.has(p.callID):
		c.report("duplicate_call_id", i, "two calls have the same id")
	default:
		calls.ids.add(p.callID)
	}
}

func (c *checker) aiSDKResult(i int, p aiSDKPartShape, calls *aiSDKCalls) {
	id := p.callID
	if p.kind == "tool-approval-response" {
		if id = calls.approvals[p.approvalID]; id != "" {
			calls.answered[id] = true
		}
		return
	}
	if id == "" || p.tool == "" || !p.output {
		c.report("bad_shape", i, "a tool-result lacks id, name or output")
		return
	}
	c.result(i, id, &calls.lastCalls)
}
