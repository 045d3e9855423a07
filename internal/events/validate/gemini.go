package validate

import (
	"cmp"

	"compactd/internal/events/codec"
)

// The rules of generateContent: ai.google.dev/gemini-api/docs/function-calling and
// /thought-signatures, and the texts of INVALID_ARGUMENT, November 2026.

type geminiMessage struct {
	Role  string                     `json:"role"`
	Parts []codec.Strict[geminiPart] `json:"parts"`
}

// geminiPart has members in two spellings.
type geminiPart struct {
	Text           codec.Words              `json:"text"`
	Thought        bool                     `json:"thought"`
	Signature      string                   `json:"thoughtSignature"`
	SnakeSignature string                   `json:"thought_signature"`
	Call           codec.Inner[geminiNamed] `json:"functionCall"`
	SnakeCall      codec.Inner[geminiNamed] `json:"function_call"`
	Response       codec.Inner[geminiNamed] `json:"functionResponse"`
	SnakeResponse  codec.Inner[geminiNamed] `json:"function_response"`
}

// geminiNamed is a call or a response.
type geminiNamed struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Response codec.Type `json:"response"`
}

// skipsSignature is the documented stand-in for the signature of a call that no model made.
const skipsSignature = "skip_thought_signature_validator"

// geminiContent is what one content has.
type geminiContent struct {
	role             string
	calls, responses []geminiNamed
	other            bool // a part that is neither
	signed           bool // any call has a signature
	unsigned         bool // its first call has none
	user             bool // it begins a turn: of a user, and more than responses
}

func (c *checker) gemini(messages []codec.Raw) {
	all := make([]geminiContent, len(messages))
	turn, signed := 0, false // where the current turn begins
	var before geminiContent
	for i, raw := range messages {
		now := c.geminiContent(i, raw)
		switch {
		case now.role == "":
		case i == 0 && !now.user:
			c.report("first_is_user", i, "a history begins with a content of the user")
		case len(now.calls) > 0 && before.role == "model":
			c.report("call_follows_user", i, "a content with a functionCall follows another of the model")
		}
		c.geminiPairs(i, !c.sent && i == len(messages)-1, before, now)
		if now.user {
			turn = i
		}
		signed = signed || now.signed
		all[i], before = now, now
	}
	if n := len(before.calls); c.sent && n > 0 {
		c.report("call_answered", len(all)-1, "%d functionCalls have no functionResponse", n)
	}
	for i := turn; signed && i < len(all); i++ {
		if all[i].unsigned {
			c.report("signature", i, "the first functionCall of a step has no thoughtSignature, though the model signs calls")
		}
	}
}

// geminiPairs compares the calls of a content with the responses of the next.
func (c *checker) geminiPairs(i int, last bool, before, now geminiContent) {
	open := len(before.calls)
	switch {
	case len(now.responses) > 0 && now.other:
		c.report("responses_apart", i, "a content has a functionResponse and something else")
	case len(now.responses) > 0 && open == 0:
		c.report("orphan_result", i, "the content before has no functionCall")
	case open > 0 && len(now.responses) != open && !(last && len(now.responses) > 0 && len(now.responses) < open):
		c.report("call_answered", i, "the number of functionResponses is not that of the functionCalls before")
	}
	var calls ids
	for _, call := range before.calls {
		calls.add(call.ID)
	}
	for _, r := range now.responses {
		if known := open == 0 || r.ID == "" || calls.has(r.ID) || calls.has(""); !known {
			c.report("orphan_result", i, "the content before has no functionCall of that id")
		}
	}
}

func (c *checker) geminiContent(i int, raw codec.Raw) (now geminiContent) {
	read := codec.ReadStrict[geminiMessage](raw)
	m := &read.Of
	if !c.whole(i, read.Bad) {
		return now
	}
	if m.Role != "user" && m.Role != "model" && m.Role != "function" {
		c.report("bad_shape", i, "the role is neither user nor model")
	}
	if len(m.Parts) == 0 {
		c.report("empty_content", i, "the content has no parts")
	}
	now.role = m.Role
	for p := range whole(c, i, m.Parts) {
		c.geminiPart(i, p, &now)
	}
	now.user = m.Role != "model" && (now.other || len(now.responses) == 0)
	return now
}

func (c *checker) geminiPart(i int, p *geminiPart, now *geminiContent) {
	signature, call, response := cmp.Or(p.Signature, p.SnakeSignature), cmp.Or(p.Call, p.SnakeCall), cmp.Or(p.Response, p.SnakeResponse)
	switch {
	case call.Is():
		if call.Of.Name == "" || now.role != "model" {
			c.report("bad_shape", i, "a functionCall has no name, or is not the model's")
		}
		now.unsigned = now.unsigned || len(now.calls) == 0 && signature == ""
		now.signed = now.signed || signature != "" && signature != skipsSignature
		now.calls = append(now.calls, call.Of)
	case response.Is():
		if response.Of.Name == "" || response.Of.Response != '{' || now.role == "model" {
			c.report("bad_shape", i, "a functionResponse lacks name or response, or is the model's")
		}
		now.responses = append(now.responses, response.Of)
	default:
		if now.other = true; p.Text == codec.Blank && signature == "" && !p.Thought {
			c.report("empty_text", i, "a text is white space")
		}
	}
}
