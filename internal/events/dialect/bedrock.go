package dialect

import (
	"slices"

	"compactd/internal/events/codec"
)

// bedrock is the Converse API of Amazon Bedrock. A content is an array of blocks; a block
// is an object with one member, which names its kind. Sources, read in November 2026:
// docs.aws.amazon.com/bedrock/latest/APIReference, ContentBlock, ToolUseBlock,
// ToolResultBlock, ReasoningContentBlock, DocumentBlock.
var bedrock = Dialect{
	Name: "bedrock", Roles: "user, assistant",
	Call: "has a toolUse without toolUseId", Result: "has a toolResult without toolUseId",
	Paired: true, UserFirst: true, Joined: JoinAll, Strict: true, Results: RoleUser,
	roles: map[string]Role{"user": RoleUser, "assistant": RoleAssistant}, blocks: "content",
	read: readBedrock, append: appendBedrock,
}

func readBedrock(d *Dialect, w *Reader) (Message, error) {
	m, _, content := d.readBlocks(w, func() (codec.Raw, []Part) { return w.blocks(w.room(), readBedrockBlock) }, w.other)
	m.Parts = foldMarks(m.Parts)
	return w.complete(m, content.Kind() == '[')
}

// foldMarks takes a cachePoint as a mark of the part before it: it is no content, and the same
// message has the same parts with and without it.
func foldMarks(parts []Part) []Part {
	out := parts[:0]
	for _, p := range parts {
		if n := len(out); n > 0 && p.Kind == PartOther && codec.Get(p.Raw, "cachePoint") != nil {
			out[n-1].CacheMark = p.Raw
			continue
		}
		out = append(out, p)
	}
	return out
}

// readBedrockBlock reads the block at w. One whose member is unknown is PartOther.
func readBedrockBlock(w *Reader, p *Part) {
	p.Raw = w.Object(func(key []byte) {
		switch string(key) {
		case "text":
			w.plain(p, w.Text())
		case "toolUse":
			w.bedrockUse(p)
		case "toolResult":
			w.bedrockResult(p)
		case "reasoningContent":
			p.Kind = PartThinking
			w.bedrockReasoning(p)
		case "document":
			p.Kind, p.Papers = PartImage, 1
			w.bedrockMedia(p)
		case "image", "video", "audio":
			p.Kind = PartImage
			w.bedrockMedia(p)
		case "type": // no block of this dialect has one
			w.odd = true
			w.Value()
		default:
			w.rest(key)
		}
	})
}

// bedrockUse reads a toolUse. One that a server carries out has its result in the same
// message, and is PartOther.
func (w *Reader) bedrockUse(p *Part) {
	var id, name, input, kind codec.Raw
	w.fields(func(key []byte) {
		switch string(key) {
		case "toolUseId":
			id = w.CallID()
		case "name":
			name = w.Value()
		case "input":
			input = w.data()
		case "type":
			kind = w.Value()
		default:
			w.Value()
		}
	})
	if kind.Kind() == '"' {
		w.hosted(p, HostedCall, id, name)
		return
	}
	p.Kind, p.Args = PartCall, input
	w.call(p, id)
	w.tool(p, name)
}

func (w *Reader) bedrockResult(p *Part) {
	var id, status, kind codec.Raw
	var inner []Part
	w.fields(func(key []byte) {
		switch string(key) {
		case "toolUseId":
			id = w.CallID()
		case "status":
			if status = w.Value(); string(codec.TextBytes(status)) == "success" {
				w.Omitted() // so is a result without
			}
		case "type":
			kind = w.Value()
		case "content":
			_, inner = w.blocks(w.innerRoom(), readBedrockAnswer)
		default:
			w.Value()
		}
	})
	if kind.Kind() == '"' {
		w.hosted(p, HostedResult, id, nil)
		return
	}
	p.Kind, p.Failed = PartResult, string(codec.TextBytes(status)) == "error"
	w.call(p, id)
	p.answer(inner)
}

// readBedrockAnswer reads a block within a toolResult.
func readBedrockAnswer(w *Reader, p *Part) {
	var json codec.Raw
	p.Raw = w.Object(func(key []byte) {
		switch string(key) {
		case "text":
			w.plain(p, w.Text())
		case "json":
			json = w.data()
		case "document":
			p.Kind, p.Papers = PartImage, 1
			w.bedrockMedia(p)
		case "image", "video":
			p.Kind = PartImage
			w.bedrockMedia(p)
		default:
			w.rest(key)
		}
	})
	if json != nil {
		p.Raw = json
	}
}

func (w *Reader) bedrockReasoning(p *Part) {
	w.fields(func(key []byte) {
		if string(key) != "reasoningText" {
			w.Value()
			return
		}
		w.fields(func(key []byte) {
			if text := w.Text(); string(key) == "text" {
				w.text(p, text)
			}
		})
	})
}

// bedrockMedia passes over an image or document: its bytes are in its source.
func (w *Reader) bedrockMedia(p *Part) {
	w.fields(func(key []byte) {
		if string(key) != "source" {
			w.Value()
			return
		}
		w.fields(func(key []byte) {
			if string(key) == "bytes" {
				w.inline(p)
			} else {
				w.Value()
			}
		})
	})
}

func appendBedrock(out codec.Raw, m *Message) (codec.Raw, error) {
	role := RoleUser
	if m.Role == RoleAssistant {
		role = RoleAssistant
	}
	parts := m.Parts
	if slices.ContainsFunc(parts, isDocument) && !slices.ContainsFunc(parts, func(p Part) bool { return p.Kind == PartText }) {
		parts = append(slices.Clone(parts), Part{Text: documentText}) // a document is refused without a text beside it
	}
	return codec.AppendWith(out, m.withRole(role), "content", func(out codec.Raw) (codec.Raw, error) { return appendBlocks(out, parts, appendBedrockBlock) })
}

// documentText stands beside a document whose text was blank.
const documentText = "(document)"

func isDocument(p Part) bool { return p.Kind == PartImage && codec.Get(p.Raw, "document") != nil }

func appendBedrockBlock(out codec.Raw, p *Part) (codec.Raw, error) {
	switch p.Kind {
	case PartText:
		return codec.AppendWith(out, orObject(p.Raw), "text", p.appendText)
	case PartCall:
		use := orObject(codec.Get(p.Raw, "toolUse"),
			codec.Member{Name: "toolUseId", Value: codec.Quote(p.CallID)}, codec.Member{Name: "name", Value: codec.Quote(p.Tool)})
		return codec.AppendWith(out, orObject(p.Raw), "toolUse", func(out codec.Raw) (codec.Raw, error) {
			return codec.AppendWith(out, use, "input", p.appendArgs)
		})
	case PartResult:
		result := orObject(codec.Get(p.Raw, "toolResult"), codec.Member{Name: "toolUseId", Value: codec.Quote(p.CallID)})
		return codec.AppendWith(out, orObject(p.Raw), "toolResult", func(out codec.Raw) (codec.Raw, error) {
			return codec.AppendWith(out, result, "content", func(out codec.Raw) (codec.Raw, error) {
				out = append(out, `[{"text":`...)
				return append(codec.AppendQuote(out, p.Text), `}]`...), nil
			})
		})
	default:
		return out, errCannotMake
	}
}
