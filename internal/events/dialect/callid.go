package dialect

import "compactd/internal/events/codec"

// WithCallIDs returns a message with other ids of calls and results: ids has them by part. All else keeps its
// bytes, except the id of an item, by which its original would be found.
func (d *Dialect) WithCallIDs(m Message, ids map[int]string) (codec.Raw, error) {
	ms, err := codec.ReadObject(m.Raw)
	if err != nil {
		return nil, err
	}
	blocks := codec.Lookup(ms, d.blocks)
	calls := []codec.Raw{} // of chat completions
	renamed := map[string]string{}
	for i := range m.Parts {
		p := m.Parts[i]
		id, ok := ids[i]
		if ok {
			renamed[p.CallID] = id
		}
		switch {
		case ok && d.blocks != "":
			p.Raw = d.blockWithID(&p, id)
		case ok && d == &openai && p.Kind == PartCall:
			p.Raw = withID(p.Raw, "id", id)
		case ok:
			ms = withIDs(ms, id)
		}
		m.Parts[i].Raw = p.Raw
		if d == &openai && p.Kind == PartCall && p.CallID != "" {
			calls = append(calls, p.Raw)
		}
	}
	switch {
	case d.blocks != "" && blocks.Kind() == '[':
		list := make([]codec.Raw, 0, len(m.Parts)) // a part for each block, and the mark behind it
		for i := range m.Parts {
			p := &m.Parts[i]
			if p.Kind == PartOther {
				p.Raw = approvalWithID(p.Raw, renamed)
			}
			if list = append(list, p.Raw); p.CacheMark != nil {
				list = append(list, p.CacheMark)
			}
		}
		ms = codec.SetMember(ms, d.blocks, codec.WriteArray(list))
	case len(calls) > 0:
		ms = codec.SetMember(ms, "tool_calls", codec.WriteArray(calls))
	}
	return codec.WriteObject(ms), nil
}

// blockWithID is the block of a call or result with another id.
func (d *Dialect) blockWithID(p *Part, id string) codec.Raw {
	call := p.Kind == PartCall
	pick := func(ofCall, ofResult string) string {
		if call {
			return ofCall
		}
		return ofResult
	}
	switch d {
	case &anthropic:
		return withID(p.Raw, pick("id", "tool_use_id"), id)
	case &bedrock:
		return withInner(p.Raw, pick("toolUse", "toolResult"), "toolUseId", id)
	case &gemini:
		return withInner(p.Raw, pick(spelled(p.Raw, "functionCall", "function_call"), spelled(p.Raw, "functionResponse", "function_response")), "id", id)
	default:
		return withID(p.Raw, "toolCallId", id)
	}
}

// approvalWithID is a part of the AI SDK in which a model requests whether a call may be carried out, with the
// call's other id.
func approvalWithID(raw codec.Raw, renamed map[string]string) codec.Raw {
	if id, ok := renamed[codec.String(codec.Get(raw, "toolCallId"))]; ok && blockType(raw) == "tool-approval-request" {
		return withID(raw, "toolCallId", id)
	}
	return raw
}

func withID(raw codec.Raw, name, id string) codec.Raw {
	out, err := codec.WithMember(raw, name, codec.Quote(id))
	if err != nil {
		return raw
	}
	return out
}

func withInner(raw codec.Raw, object, name, id string) codec.Raw {
	out, err := codec.WithMember(raw, object, withID(codec.Get(raw, object), name, id))
	if err != nil {
		return raw
	}
	return out
}

// withIDs replaces the id in the members of a message or item that is a call or a result.
func withIDs(ms []codec.Member, id string) []codec.Member {
	kind := codec.String(codec.Lookup(ms, "type"))
	out := make([]codec.Member, 0, len(ms))
	for _, m := range ms {
		switch m.Name {
		case "tool_call_id", "toolCallId", "call_id", "approval_request_id":
			m.Value = codec.Quote(id)
		case "metadata":
			if codec.Get(m.Value, "toolCallId") != nil {
				m.Value = withID(m.Value, "toolCallId", id)
			}
		case "id":
			switch {
			case kind == approvalRequest:
				m.Value = codec.Quote(id)
			case kind != "":
				continue
			}
		}
		out = append(out, m)
	}
	return out
}
