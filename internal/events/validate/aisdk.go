package validate

import (
	"slices"

	"compactd/internal/events/codec"
)

// The rules of ModelMessage: the schemas of ai 6.0, src/prompt/message.ts and
// content-part.ts, and the check for missing results in
// convert-to-language-model-prompt.ts, November 2026. Providers behind the SDK demand that
// results follow their calls directly.

type aiSDKMessage struct {
	Role    string                                 `json:"role"`
	Content codec.Content[codec.Strict[aiSDKPart]] `json:"content"`
}

type aiSDKPart struct {
	Kind       string                    `json:"type"`
	Text       codec.Words               `json:"text"`
	CallID     string                    `json:"toolCallId"`
	Tool       string                    `json:"toolName"`
	Input      codec.Type                `json:"input"`
	Args       codec.Type                `json:"args"`
	Output     codec.Strict[aiSDKOutput] `json:"output"` // which need not be one
	Result     codec.Type                `json:"result"`
	Own        bool                      `json:"providerExecuted"`
	ApprovalID string                    `json:"approvalId"`
}

type aiSDKOutput struct {
	Kind string `json:"type"`
}

// answers reports whether a result has an output of a type, or a result.
func (p *aiSDKPart) answers() bool { return !p.Output.Bad && p.Output.Of.Kind != "" || p.Result != 0 }

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
		m := codec.ReadStrict[aiSDKMessage](raw)
		if !c.whole(i, m.Bad) {
			continue
		}
		parts := c.aiSDKContent(i, &m.Of)
		if m.Of.Role == "tool" {
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

func (c *checker) aiSDKContent(i int, m *aiSDKMessage) (out []*aiSDKPart) {
	types, known := aiSDKParts[m.Role]
	switch kind := m.Content.Type; {
	case m.Role == "system" && kind == '"', known && m.Role != "tool" && kind == '"':
		return nil
	case !known || kind != '[':
		c.report("bad_shape", i, "the role is unknown, or its content is of another type")
		return nil
	}
	if m.Content.Empty() {
		c.report("empty_content", i, "the content has no parts")
	}
	for p := range whole(c, i, m.Content.List) {
		if !slices.Contains(types, p.Kind) || p.Kind == "text" && p.Text <= codec.Null {
			c.report("bad_shape", i, "a part has a type that its role has not, or no text")
			continue
		}
		out = append(out, p)
	}
	return out
}

func (c *checker) aiSDKCall(i int, p *aiSDKPart, calls *aiSDKCalls) {
	switch {
	case p.Kind == "tool-approval-request":
		calls.approvals[p.ApprovalID] = p.CallID
	case p.Kind != "tool-call":
	case p.CallID == "" || p.Tool == "" || p.Input == 0 && p.Args == 0:
		c.report("bad_shape", i, "a tool-call lacks id, name or input")
	case p.Own:
	case calls.ids.has(p.CallID):
		c.report("duplicate_call_id", i, "two calls have the same id")
	default:
		calls.ids.add(p.CallID)
	}
}

func (c *checker) aiSDKResult(i int, p *aiSDKPart, calls *aiSDKCalls) {
	id := p.CallID
	if p.Kind == "tool-approval-response" {
		if id = calls.approvals[p.ApprovalID]; id != "" {
			calls.answered[id] = true
		}
		return
	}
	if id == "" || p.Tool == "" || !p.answers() {
		c.report("bad_shape", i, "a tool-result lacks id, name or output")
		return
	}
	c.result(i, id, &calls.lastCalls)
}
