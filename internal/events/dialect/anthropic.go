package dialect

import (
	"bytes"
	"strings"

	"compactd/internal/events/codec"
)

var anthropic = Dialect{
	Name: "anthropic", Roles: "user, assistant",
	Call: "has a tool_use without id", Result: "has a tool_result without tool_use_id",
	Paired: true, UserFirst: true, Joined: JoinAll, SystemByModel: true, Strict: true, Results: RoleUser, HostedPairs: true,
	roles: map[string]Role{"user": RoleUser, "assistant": RoleAssistant, "system": RoleSystem}, blocks: "content",
	read: readAnthropic, append: appendAnthropic, inPlace: true,
}

// readAnthropic reads a message of Anthropic's messages API. A system message
// is not part of that API, but harmless: some gateways take it.
func readAnthropic(d *Dialect, w *Reader) (Message, error) {
	m, _, content := d.readBlocks(w, func() (codec.Raw, []Part) { return readContent(w, w.room(), readAnthropicBlock) }, w.other)
	return w.complete(m, content.Kind() == '"' || content.Kind() == '[')
}

// readAnthropicBlock reads the block at w. A block of unknown type, or of a
// text that is no string, is PartOther.
func readAnthropicBlock(w *Reader, p *Part) {
	var kind, id, name, input, answers, failed codec.Raw
	var text, thinking, content codec.Measured
	var inner []Part
	cites := false
	p.Raw = w.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = w.Value()
		case "text":
			text = w.Text()
		case "thinking":
			thinking = w.Text()
		case "id":
			id = w.CallID()
		case "name":
			name = w.Value()
		case "input":
			input = w.data()
		case "tool_use_id":
			answers = w.CallID()
		case "content":
			if inner = nil; w.Kind() == '[' {
				content.Raw, inner = readContent(w, w.innerRoom(), readPlainBlock)
			} else {
				from := w.Position()
				content = w.Text()
				w.sameContent(from)
			}
		case "source":
			w.media(p)
		case "is_error":
			failed = w.flag()
		case "citations":
			cites = bytes.Contains(w.Value(), []byte(encryptedIndex))
		default:
			w.rest(key)
		}
	})
	switch kind := string(codec.TextBytes(kind)); kind {
	case "text":
		w.plain(p, text)
		if cites {
			p.Hosted.Kind = HostedCites
		}
	case "server_tool_use", "mcp_tool_use":
		w.hosted(p, HostedCall, id, name)
	case "tool_use":
		p.Kind, p.Args = PartCall, input
		w.call(p, id)
		w.tool(p, name)
	case "tool_result":
		p.Kind, p.Failed = PartResult, failed.Kind() == 't'
		w.call(p, answers)
		if w.text(p, content); content.Raw.Kind() == '[' {
			p.answer(inner)
		} else if content.Raw.Kind() == '{' {
			p.Text = string(content.Raw)
		}
	case "thinking":
		p.Kind = PartThinking
		w.text(p, thinking)
	case "redacted_thinking":
		p.Kind = PartThinking
	case "compaction": // what came before is in it: its message stays
		p.Locked, w.pin = true, true
	case "document":
		p.Kind, p.Papers = PartImage, 1
	case "image":
		p.Kind = PartImage
	default:
		if strings.HasSuffix(kind, "_tool_result") { // web_search_tool_result, mcp_tool_result and so on
			w.hosted(p, HostedResult, answers, nil)
		}
	}
}

// appendAnthropic puts the parts of m into its Raw, nil when m is made by compactd.
func appendAnthropic(out codec.Raw, m *Message) (codec.Raw, error) {
	role := m.Role
	if role == RoleTool { // results are a user's blocks here
		role = RoleUser
	}
	return codec.AppendWith(out, m.withRole(role), "content", func(out codec.Raw) (codec.Raw, error) { return appendContent(out, m.Parts, appendAnthropicBlock) })
}

func appendAnthropicBlock(out codec.Raw, p *Part) (codec.Raw, error) {
	return appendBlock(out, p, createAnthropicBlock)
}

func createAnthropicBlock(p Part) (codec.Raw, error) {
	switch p.Kind {
	case PartText:
		return textBlock(p.Text), nil
	case PartCall:
		return codec.WriteObject([]codec.Member{
			{Name: "type", Value: codec.Raw(`"tool_use"`)},
			{Name: "id", Value: codec.Quote(p.CallID)},
			{Name: "name", Value: codec.Quote(p.Tool)},
			{Name: "input", Value: arguments(p)},
		}), nil
	case PartResult:
		ms := []codec.Member{
			{Name: "type", Value: codec.Raw(`"tool_result"`)},
			{Name: "tool_use_id", Value: codec.Quote(p.CallID)},
			{Name: "content", Value: codec.Quote(p.Text)},
		}
		if p.Failed {
			ms = append(ms, codec.Member{Name: "is_error", Value: codec.Raw(`true`)})
		}
		return codec.WriteObject(ms), nil
	default:
		return nil, errCannotMake
	}
}
