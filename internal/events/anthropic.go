package events

import "compactd/internal/events/codec"

// readAnthropic reads a message of Anthropic's messages API. A system message
// is no part of it, but harmless: some gateways take it.
func readAnthropic(w reader) (Message, error) {
	var m Message
	var role, content Raw
	w.Object(func(key []byte) {
		switch string(key) {
		case "role":
			role = w.Value()
		case "content":
			content, m.Parts = readContent(&w, readAnthropicBlock)
		default:
			w.Value()
		}
	})
	err := w.End()
	switch string(codec.TextBytes(role)) {
	case "user":
		m.Role = RoleUser
	case "assistant":
		m.Role = RoleAssistant
	case "system":
		m.Role = RoleSystem
	default:
		m.Role = ""
	}
	switch {
	case err != nil:
		return m, errNoMessage
	case m.Role == "":
		return m, errNoRole
	case content.Kind() != '"' && content.Kind() != '[':
		return m, errNoContent
	}
	return m, nil
}

// readAnthropicBlock reads the block at w. One whose type is unknown, or whose
// text is none, is PartOther.
func readAnthropicBlock(w *reader) Part {
	if w.Kind() != '{' {
		return Part{Kind: PartOther, Raw: w.Value()}
	}
	var kind, text, thinking, id, name, input, answers, content, failed Raw
	var inner []Part
	raw := w.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = w.Value()
		case "text":
			text = w.Value()
		case "thinking":
			thinking = w.Value()
		case "id":
			id = w.Value()
		case "name":
			name = w.Value()
		case "input":
			input = w.Value()
		case "tool_use_id":
			answers = w.Value()
		case "content":
			if inner = nil; w.Kind() == '[' {
				content, inner = readContent(w, readPlainBlock)
			} else {
				content = w.Value()
			}
		case "is_error":
			failed = w.Value()
		default:
			w.Value()
		}
	})
	p := Part{Kind: PartOther, Raw: raw}
	switch string(codec.TextBytes(kind)) {
	case "text":
		if w.text(&p, text) {
			p.Kind = PartText
		}
	case "tool_use":
		p.Kind, p.Args = PartCall, input
		p.CallID, _ = codec.Text(id)
		p.NoID = p.CallID == ""
		p.Tool, _ = codec.Text(name)
	case "tool_result":
		p.Kind, p.Failed = PartResult, failed.Kind() == 't'
		p.CallID, _ = codec.Text(answers)
		p.NoID = p.CallID == ""
		if w.text(&p, content); content.Kind() == '[' {
			p.answer(inner)
		} else if content.Kind() == '{' {
			p.Text = string(content)
		}
	case "thinking":
		p.Kind = PartThinking
		w.text(&p, thinking)
	case "redacted_thinking":
		p.Kind = PartThinking
	case "image", "document":
		p.Kind = PartImage
	}
	return p
}

// appendAnthropic puts the parts of m into its Raw, nil when m is made by compactd.
func appendAnthropic(out Raw, m *Message) (Raw, error) {
	raw := m.Raw
	switch {
	case raw != nil:
	case m.Role == RoleAssistant:
		raw = Raw(`{"role":"assistant"}`)
	case m.Role == RoleSystem:
		raw = Raw(`{"role":"system"}`)
	default: // results are a user's blocks here
		raw = Raw(`{"role":"user"}`)
	}
	return codec.AppendWith(out, raw, "content", func(out Raw) (Raw, error) { return appendContent(out, m.Parts, createAnthropicBlock) })
}

func createAnthropicBlock(p Part) (Raw, error) {
	switch p.Kind {
	case PartText:
		return textBlock(p.Text), nil
	case PartCall:
		return codec.WriteObject([]codec.Member{
			{Name: "type", Value: Raw(`"tool_use"`)},
			{Name: "id", Value: codec.Quote(p.CallID)},
			{Name: "name", Value: codec.Quote(p.Tool)},
			{Name: "input", Value: arguments(p)},
		}), nil
	case PartResult:
		ms := []codec.Member{
			{Name: "type", Value: Raw(`"tool_result"`)},
			{Name: "tool_use_id", Value: codec.Quote(p.CallID)},
			{Name: "content", Value: codec.Quote(p.Text)},
		}
		if p.Failed {
			ms = append(ms, codec.Member{Name: "is_error", Value: Raw(`true`)})
		}
		return codec.WriteObject(ms), nil
	default:
		return nil, errCannotMake
	}
}
