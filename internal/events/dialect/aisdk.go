package dialect

import "compactd/internal/events/codec"

// aiSDK is ModelMessage of Vercel's AI SDK, as convertToModelMessages makes them and
// response.messages has them. Sources, read in November 2026:
// ai-sdk.dev/docs/reference/ai-sdk-core/model-message, and of ai 6.0
// src/prompt/message.ts, src/prompt/content-part.ts,
// src/prompt/convert-to-language-model-prompt.ts. Results of version 4 (result, isError)
// and its arguments (args) are read too.
var aiSDK = Dialect{
	Name: "ai-sdk", Roles: "system, user, assistant, tool",
	Call: "has a tool-call without toolCallId", Result: "has a tool-result without toolCallId",
	Paired: true, Joined: JoinTools, Results: RoleTool,
	roles: map[string]Role{"system": RoleSystem, "user": RoleUser, "assistant": RoleAssistant, "tool": RoleTool}, blocks: "content",
	read: readAISDK, append: appendAISDK,
}

func readAISDK(d *Dialect, w *Reader) (Message, error) {
	m, _, content := d.readBlocks(w, func() (codec.Raw, []Part) { return readContent(w, w.room(), readAISDKPart) }, func(key []byte) {
		switch {
		case isOptions(key):
			w.options()
		case string(key) == "tool_call_id": // of chat completions
			w.odd = true
			w.Value()
		default:
			w.other(key)
		}
	})
	m, err := w.complete(m, content.Kind() == '[' || content.Kind() == '"' && m.Role != RoleTool)
	if err == nil && m.Role != RoleTool { // results beside their calls are those of a provider's own tools
		for i := range m.Parts {
			if p := &m.Parts[i]; p.Kind == PartResult {
				*p = Part{Kind: PartOther, Raw: p.Raw, Hosted: p.Hosted}
			}
		}
	}
	return m, err
}

// readAISDKPart reads the part at w. One of an unknown type is PartOther, and so is a call
// that the provider carries out: its result is in the same message.
func readAISDKPart(w *Reader, p *Part) {
	var kind, id, name, input, own, failed codec.Raw
	var text codec.Measured
	var answer Part
	p.Raw = w.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = w.Value()
		case "text":
			text = w.Text()
		case "toolCallId":
			id = w.CallID()
		case "toolName":
			name = w.Value()
		case "input", "args":
			input = w.data()
		case "output":
			w.aiSDKOutput(&answer)
		case "providerOptions", "providerMetadata", "experimental_providerMetadata":
			w.options()
		case "result":
			v := w.Text()
			w.Keep()
			if answer = (Part{}); !w.text(&answer, v) {
				answer.Text = string(v.Raw)
			}
		case "isError":
			failed = w.flag()
		case "providerExecuted":
			own = w.flag()
		case "image", "data":
			w.media(p)
		case "mediaType", "mimeType":
			w.mediaType(p)
		default:
			w.rest(key)
		}
	})
	switch string(codec.TextBytes(kind)) {
	case "text":
		w.plain(p, text)
	case "reasoning":
		p.Kind = PartThinking
		w.text(p, text)
	case "image", "file", "reasoning-file":
		p.Kind = PartImage
	case "tool-call":
		if isTrue(own) {
			w.hosted(p, HostedCall, id, name)
			return
		}
		p.Kind, p.Args = PartCall, input
		w.call(p, id)
		w.tool(p, name)
	case "tool-result":
		raw := p.Raw
		*p = answer
		p.Kind, p.Raw, p.Failed = PartResult, raw, answer.Failed || isTrue(failed)
		w.call(p, id)
		w.tool(p, name)
		w.hosted(p, HostedResult, id, nil) // where it is beside its call
	}
}

// aiSDKOutput reads the output of a tool-result: a text, a JSON value, or content parts.
func (w *Reader) aiSDKOutput(p *Part) {
	var kind codec.Raw
	var value codec.Measured
	var inner []Part
	raw := w.fields(func(key []byte) {
		switch string(key) {
		case "type":
			kind = w.Value()
		case "value", "reason":
			if inner = nil; w.Kind() == '[' {
				value.Raw, inner = w.blocks(w.innerRoom(), readAISDKAnswer)
			} else {
				value = w.Text()
			}
			w.Keep()
		case "providerOptions":
			w.options()
		default:
			w.Value()
		}
	})
	*p = Part{}
	switch k := string(codec.TextBytes(kind)); k {
	case "error-text", "error-json", "execution-denied":
		p.Failed = true
	case "content":
		p.answer(inner)
		return
	}
	switch {
	case w.text(p, value):
	case value.Raw != nil:
		p.Text = string(value.Raw)
	case len(raw) > 0 && raw.Kind() != '{':
		p.Text = string(raw)
	}
}

// readAISDKAnswer reads a part within the output of a tool-result. All that is neither text
// nor unknown is media.
func readAISDKAnswer(w *Reader, p *Part) {
	var kind codec.Raw
	var text codec.Measured
	p.Raw = w.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = w.Value()
		case "text":
			text = w.Text()
		case "providerOptions":
			w.options()
		case "data", "url":
			w.media(p)
		case "mediaType", "mimeType":
			w.mediaType(p)
		default:
			w.rest(key)
		}
	})
	switch string(codec.TextBytes(kind)) {
	case "text":
		w.plain(p, text)
	case "media", "image-data", "image-url", "image-file-id", "file", "file-data", "file-url", "file-id":
		p.Kind = PartImage
	}
}

func appendAISDK(out codec.Raw, m *Message) (codec.Raw, error) {
	return codec.AppendWith(out, m.withRole(m.Role), "content", func(out codec.Raw) (codec.Raw, error) { return appendContent(out, m.Parts, appendAISDKPart) })
}

func appendAISDKPart(out codec.Raw, p *Part) (codec.Raw, error) {
	switch p.Kind {
	case PartText:
		return codec.AppendWith(out, orObject(p.Raw, codec.Member{Name: "type", Value: codec.Raw(`"text"`)}), "text", p.appendText)
	case PartCall:
		raw := orObject(p.Raw, p.aiSDKNames("tool-call")...)
		return codec.AppendWith(out, raw, spelled(raw, "input", "args"), p.appendArgs)
	case PartResult:
		raw := orObject(p.Raw, p.aiSDKNames("tool-result")...)
		if codec.Get(raw, "result") != nil && codec.Get(raw, "output") == nil {
			return codec.AppendWith(out, raw, "result", p.appendText)
		}
		kind := "text"
		if p.Failed {
			kind = "error-text"
		}
		output := codec.WriteObject([]codec.Member{{Name: "type", Value: codec.Quote(kind)}, {Name: "value", Value: codec.Quote(p.Text)}})
		return codec.AppendWith(out, raw, "output", func(out codec.Raw) (codec.Raw, error) { return append(out, output...), nil })
	default:
		return out, errCannotMake
	}
}

// aiSDKNames are the members of a call or result that compactd makes.
func (p *Part) aiSDKNames(kind string) []codec.Member {
	return []codec.Member{
		{Name: "type", Value: codec.Quote(kind)}, {Name: "toolCallId", Value: codec.Quote(p.CallID)}, {Name: "toolName", Value: codec.Quote(p.Tool)},
	}
}
