package dialect

import (
	"slices"

	"compactd/internal/events/codec"
)

// gemini is generateContent of Gemini, in AI Studio and Vertex AI: contents with parts, in
// camel case or, as the SDK for Python has them, in snake case. Sources, read in November
// 2026: ai.google.dev/api/caching#Content and /gemini-api/docs/function-calling,
// /gemini-api/docs/thought-signatures.
var gemini = Dialect{
	Name: "gemini", Roles: "user, model",
	UserFirst: true, Joined: JoinTools, Strict: true, Apart: true, Results: RoleTool,
	roles: map[string]Role{"model": RoleAssistant, "user": RoleUser, "function": RoleUser, "": RoleUser}, blocks: "parts",
	read: readGemini, append: appendGemini,
}

func readGemini(d *Dialect, w *Reader) (Message, error) {
	m, role, parts := d.readBlocks(w, func() (codec.Raw, []Part) { return w.blocks(w.room(), readGeminiPart) }, w.other)
	switch {
	case role != nil && role.Kind() != '"':
		m.Role = ""
	case m.Role == RoleUser && len(m.Parts) > 0 && !slices.ContainsFunc(m.Parts, isNoResult):
		m.Role = RoleTool
	}
	return w.complete(m, parts.Kind() == '[')
}

func isNoResult(p Part) bool { return p.Kind != PartResult }

// codeExecution names the calls of the tool whose parts have no ids: a result follows its call.
var codeExecution = codec.Raw(`"code_execution"`)

// readGeminiPart reads the part at w. A signature stays in its part. Words that have one are
// never edited; of a call, which providers check for the signature alone, the arguments may
// be cut when nothing else helps.
func readGeminiPart(w *Reader, p *Part) {
	var signature, thought codec.Raw
	p.Raw = w.Object(func(key []byte) {
		switch string(key) {
		case "text":
			w.plain(p, w.Text())
		case "thought":
			thought = w.flag()
		case "thoughtSignature", "thought_signature":
			signature = w.Value()
		case "functionCall", "function_call":
			w.geminiCall(p)
		case "functionResponse", "function_response":
			w.geminiResponse(p)
		case "executableCode", "executable_code":
			w.hosted(p, HostedCall, codeExecution, codeExecution)
			w.Value()
		case "codeExecutionResult", "code_execution_result":
			w.hosted(p, HostedResult, codeExecution, nil)
			w.Value()
		case "type": // no part of this dialect has one
			w.odd = true
			w.Value()
		case "inlineData", "inline_data", "fileData", "file_data":
			p.Kind = PartImage
			w.media(p)
		default:
			w.rest(key)
		}
	})
	if signature != nil {
		p.Hosted = Hosted{}
	}
	signed := signature.Kind() == '"' && len(signature) > len(`""`)
	p.Locked = signed && p.Kind != PartCall
	if p.Kind == PartText && (isTrue(thought) || signed && p.Blank()) {
		p.Kind = PartThinking // a signature may come with an empty text, which has to stay
	}
}

func (w *Reader) geminiCall(p *Part) {
	var id, name, args codec.Raw
	w.fields(func(key []byte) {
		switch string(key) {
		case "id":
			id = w.CallID()
		case "name":
			name = w.Value()
		case "args":
			args = w.data()
		default:
			w.Value()
		}
	})
	p.Kind, p.Args = PartCall, args
	w.call(p, id)
	p.NoID = false // what belongs together is found by place
	w.tool(p, name)
}

// geminiResponse reads a functionResponse. The text of a response with one string is that
// string, else its JSON.
func (w *Reader) geminiResponse(p *Part) {
	var id, name, response codec.Raw
	var text codec.Measured
	var inner []Part
	members, failed := 0, false
	w.fields(func(key []byte) {
		switch string(key) {
		case "id":
			id = w.CallID()
		case "name":
			name = w.Value()
		case "response":
			response = w.fields(func(key []byte) {
				text, failed = w.Text(), string(key) == "error"
				w.Keep()
				members++
			})
		case "parts":
			_, inner = w.blocks(w.innerRoom(), readGeminiPart)
		default:
			w.Value()
		}
	})
	p.Kind = PartResult
	p.Failed = failed && members == 1
	w.call(p, id)
	p.NoID = false
	w.tool(p, name)
	switch {
	case members == 1 && text.Raw.Kind() == '"':
		w.text(p, text)
	case response != nil:
		p.Text = string(response)
	}
	for i := range inner {
		if inner[i].Kind == PartImage {
			p.has(&inner[i])
		}
	}
}

func appendGemini(out codec.Raw, m *Message) (codec.Raw, error) {
	role := RoleUser
	if m.Role == RoleAssistant {
		role = "model"
	}
	return codec.AppendWith(out, m.withRole(role), "parts", func(out codec.Raw) (codec.Raw, error) { return appendBlocks(out, m.Parts, appendGeminiPart) })
}

// sentinel is the signature of a call that no model made: with it the signatures of a turn
// are not checked (ai.google.dev/gemini-api/docs/thought-signatures, FAQ, November 2026).
const sentinel = "skip_thought_signature_validator"

func appendGeminiPart(out codec.Raw, p *Part) (codec.Raw, error) {
	switch p.Kind {
	case PartText:
		return codec.AppendWith(out, orObject(p.Raw), "text", p.appendText)
	case PartCall:
		raw := p.Raw
		if raw == nil {
			raw = codec.WriteObject([]codec.Member{
				{Name: "functionCall", Value: codec.WriteObject(p.geminiNames())}, {Name: "thoughtSignature", Value: codec.Quote(sentinel)},
			})
		}
		name := spelled(raw, "functionCall", "function_call")
		return codec.AppendWith(out, raw, name, func(out codec.Raw) (codec.Raw, error) {
			return codec.AppendWith(out, codec.Get(raw, name), "args", p.appendArgs)
		})
	case PartResult:
		name := spelled(p.Raw, "functionResponse", "function_response")
		was := orObject(codec.Get(p.Raw, name), p.geminiNames()...)
		ms, err := codec.ReadObject(was)
		if err != nil {
			return out, errCannotMake
		}
		field := "output"
		if p.Failed {
			field = "error"
		}
		ms = codec.SetMember(without(ms, "parts"), "response", codec.WriteObject([]codec.Member{{Name: field, Value: codec.Quote(p.Text)}}))
		return codec.AppendWith(out, orObject(p.Raw), name, func(out codec.Raw) (codec.Raw, error) { return codec.AppendObject(out, ms), nil })
	default:
		return out, errCannotMake
	}
}

// geminiNames are the members of a call or response that compactd makes.
func (p *Part) geminiNames() (ms []codec.Member) {
	if p.CallID != "" {
		ms = append(ms, codec.Member{Name: "id", Value: codec.Quote(p.CallID)})
	}
	return append(ms, codec.Member{Name: "name", Value: codec.Quote(p.Tool)})
}

// spelled is the spelling that an object has, the first if it has neither.
func spelled(raw codec.Raw, camel, snake string) string {
	if codec.Get(raw, snake) != nil {
		return snake
	}
	return camel
}
