package events

// readAnthropic reads a message of Anthropic's messages API. A system message
// is no part of it, but harmless: some gateways take it.
func readAnthropic(w walker) (Message, error) {
	var m Message
	var role, content Raw
	w.object(func(key []byte) {
		switch string(key) {
		case "role":
			role = w.value()
		case "content":
			content, m.Parts = readContent(&w, readAnthropicBlock)
		default:
			w.value()
		}
	})
	err := w.end()
	switch string(bare(role)) {
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
func readAnthropicBlock(w *walker) Part {
	if w.kind() != '{' {
		return Part{Kind: PartOther, Raw: w.value()}
	}
	var kind, text, thinking, id, name, input, answers, content, failed Raw
	var inner []Part
	raw := w.object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = w.value()
		case "text":
			text = w.value()
		case "thinking":
			thinking = w.value()
		case "id":
			id = w.value()
		case "name":
			name = w.value()
		case "input":
			input = w.value()
		case "tool_use_id":
			answers = w.value()
		case "content":
			if inner = nil; w.kind() == '[' {
				content, inner = readContent(w, readPlainBlock)
			} else {
				content = w.value()
			}
		case "is_error":
			failed = w.value()
		default:
			w.value()
		}
	})
	p := Part{Kind: PartOther, Raw: raw}
	switch string(bare(kind)) {
	case "text":
		if w.text(&p, text) {
			p.Kind = PartText
		}
	case "tool_use":
		p.Kind, p.Args = PartCall, input
		p.CallID, _ = unquote(id)
		p.NoID = p.CallID == ""
		p.Tool, _ = unquote(name)
	case "tool_result":
		p.Kind, p.Failed = PartResult, failed.Kind() == 't'
		p.CallID, _ = unquote(answers)
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

// writeAnthropic puts the parts of m into the members of its Raw, nil when m is
// made by compactd.
func writeAnthropic(m Message, ms []member) ([]member, error) {
	content, err := writeContent(m.Parts, createAnthropicBlock)
	if err != nil {
		return nil, err
	}
	if ms == nil {
		role := m.Role
		if role == RoleTool {
			role = RoleUser // results are a user's blocks here
		}
		ms = []member{{"role", quote(string(role))}}
	}
	return set(ms, "content", content), nil
}

func createAnthropicBlock(p Part) (Raw, error) {
	switch p.Kind {
	case PartText:
		return textBlock(p.Text), nil
	case PartCall:
		return object([]member{
			{"type", Raw(`"tool_use"`)},
			{"id", quote(p.CallID)},
			{"name", quote(p.Tool)},
			{"input", arguments(p)},
		}), nil
	case PartResult:
		ms := []member{
			{"type", Raw(`"tool_result"`)},
			{"tool_use_id", quote(p.CallID)},
			{"content", quote(p.Text)},
		}
		if p.Failed {
			ms = append(ms, member{"is_error", Raw(`true`)})
		}
		return object(ms), nil
	default:
		return nil, errCannotMake
	}
}
