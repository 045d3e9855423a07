package validate

import "compactd/internal/events/codec"

// The rules of generateContent: ai.google.dev/gemini-api/docs/function-calling and
// /thought-signatures, and the texts of INVALID_ARGUMENT, November 2026.

type geminiShape struct {
	bad   bool
	role  string
	parts []geminiPartShape
}

type geminiPartShape struct {
	bad            bool
	text           words
	thought        bool
	signed         bool
	skips          bool // its signature is the stand-in
	call, response geminiNamedShape
}

// geminiNamedShape is a call or a response; the zero one is absent.
type geminiNamedShape struct {
	is       bool
	id, name string
	response codec.Kind
}

func readGemini(raw codec.Raw) (m geminiShape) {
	m.role, m.parts, m.bad = readRoled(raw, "parts", readGeminiPart)
	return m
}

// skipsSignature is the documented stand-in for the signature of a call that no model made.
const skipsSignature = `"skip_thought_signature_validator"`

func readGeminiPart(r *codec.Strict) (p geminiPartShape) {
	p.bad = readObject(r, func(r *codec.Strict, key []byte) {
		switch string(key) {
		case "text":
			p.text = readWords(r)
		case "thought":
			p.thought = r.Bool()
		case "thoughtSignature", "thought_signature":
			signature := r.Quoted()
			p.signed = p.signed || len(signature) > len(`""`)
			p.skips = string(signature) == skipsSignature
		case "functionCall", "function_call":
			if n := readGeminiNamed(r); n.is {
				p.call = n
			}
		case "functionResponse", "function_response":
			if n := readGeminiNamed(r); n.is {
				p.response = n
			}
		default:
			r.Skip()
		}
	})
	return p
}

func readGeminiNamed(r *codec.Strict) (n geminiNamedShape) {
	n.is = r.Object(func(key []byte) {
		switch string(key) {
		case "id":
			n.id = r.String()
		case "name":
			n.name = r.String()
		case "response":
			n.response = r.Skip()
		default:
			r.Skip()
		}
	})
	return n
}

// geminiContent is what one content has.
type geminiContent struct {
	role             string
	calls, responses []geminiNamedShape
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
		calls.add(call.id)
	}
	for _, r := range now.responses {
		if known := open == 0 || r.id == "" || calls.has(r.id) || calls.has(""); !known {
			c.report("orphan_result", i, "the content before has no functionCall of that id")
		}
	}
}

func (c *checker) geminiContent(i int, raw codec.Raw) (now geminiContent) {
	m := readGemini(raw)
	if !c.whole(i, m.bad) {
		return now
	}
	if m.role != "user" && m.role != "model" && m.role != "function" {
		c.report("bad_shape", i, "the role is neither user nor model")
	}
	if len(m.parts) == 0 {
		c.report("empty_content", i, "the content has no parts")
	}
	now.role = m.role
	for _, p := range m.parts {
		if c.whole(i, p.bad) {
			c.geminiPart(i, p, &now)
		}
	}
	now.user = m.role != "model" && (now.other || len(now.responses) == 0)
	return now
}

func (c *checker) geminiPart(i int, p geminiPartShape, now *geminiContent) {
	switch {
	case p.call.is:
		if p.call.name == "" || now.role != "model" {
			c.report("bad_shape", i, "a functionCall has no name, or is not the model's")
		}
		now.unsigned = now.unsigned || len(now.calls) == 0 && !p.signed
		now.signed = now.signed || p.signed && !p.skips
		now.calls = append(now.calls, p.call)
	case p.response.is:
		if p.response.name == "" || p.response.response != '{' || now.role == "model" {
			c.report("bad_shape", i, "a functionResponse lacks name or response, or is the model's")
		}
		now.responses = append(now.responses, p.response)
	default:
		if now.other = true; p.text == blankText && !p.signed && !p.thought {
			c.report("empty_text", i, "a text is white space")
		}
	}
}
