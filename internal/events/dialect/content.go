package dialect

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/media"
	"compactd/internal/events/weigh"
)

// OpenAI and Anthropic have one form of content: a string, or an array of blocks
// that name their type.

var (
	errCannotMake = errors.New("a part of this kind cannot be made, only kept")
	errMisplaced  = errors.New("a part of this kind does not belong into this message")
)

// readContent reads the value at w, a string or an array of blocks. For a string
// there is one part without Raw. Raw is the content itself. Parts are appended to a list.
func readContent(w *Reader, parts []Part, block func(*Reader, *Part)) (codec.Raw, []Part) {
	from := w.Position()
	defer func() { w.sameContent(from) }()
	if w.Kind() == '[' {
		return w.blocks(parts, block)
	}
	text := w.Text()
	if text.Raw.Kind() == '"' {
		parts = append(parts, Part{})
		w.text(&parts[len(parts)-1], text)
	}
	return text.Raw, parts
}

// readPlainBlock reads a block that is neither call nor result: one of OpenAI's, or one within a result of
// Anthropic's. A result within a result is PartOther: descending would cost a hostile event's depth times its
// size.
func readPlainBlock(w *Reader, p *Part) {
	var kind codec.Raw
	var text, refusal codec.Measured
	p.Raw = w.Object(func(key []byte) {
		switch string(key) {
		case "type":
			kind = w.Value()
		case "text":
			text = w.Text()
		case "refusal":
			refusal = w.Text()
		case "image_url", "source", "input_audio", "file":
			w.media(p)
		default:
			w.rest(key)
		}
	})
	switch string(codec.TextBytes(kind)) {
	case "refusal":
		text = refusal
		fallthrough
	case "text":
		w.plain(p, text)
	case "document", "file":
		p.Kind, p.Papers = PartImage, 1
	case "image", "image_url", "input_audio":
		p.Kind = PartImage
	}
}

// CacheControl is where agents mark what a provider is to cache.
const CacheControl = "cache_control"

// media reads a value with inline media: a URL, or an object with one of the providers' members for it.
func (w *Reader) media(p *Part) {
	if w.Kind() != '{' || w.IsBytes() {
		w.inline(p)
		return
	}
	low := false
	w.Object(func(key []byte) {
		switch string(key) {
		case "url", "data", "file_data":
			w.inline(p)
		case "content": // blocks of a document of Anthropic's
			w.blocks(nil, readPlainBlock)
		case "detail":
			low = w.low()
		case "media_type", "mimeType", "mime_type":
			w.mediaType(p)
		default:
			w.Value()
		}
	})
	if low {
		p.Media = p.Media.Low()
	}
}

// low reads the member "detail" of an image.
func (w *Reader) low() bool { return string(codec.TextBytes(w.Value())) == "low" }

// inline reads a value that may be inline media, and measures it.
func (w *Reader) inline(p *Part) {
	if s := media.Of(w.Media()); s.Known() {
		p.Media = s
		if s.Pages > 0 {
			p.Papers = 1
		}
	}
}

// mediaType reads the type of media: other types than image, audio and video are documents.
func (w *Reader) mediaType(p *Part) {
	kind := codec.TextBytes(w.Value())
	for _, document := range []string{"application/", "text/"} {
		if bytes.HasPrefix(kind, []byte(document)) {
			p.Papers = 1
		}
	}
}

// has counts one more image or document inside a result.
func (p *Part) has(x *Part) {
	p.Media = p.Media.Add(p.Images, x.Media)
	p.Images++
	p.Papers += x.Papers
}

// other reads a member of a message except its role and its content. Fields about its time and author do not
// belong to its identity.
func (w *Reader) other(key []byte) {
	switch string(key) {
	case "id", "timestamp", "metadata":
		w.Omit()
	case "pin":
		w.pin = w.Value().Kind() == 't'
	case "ref":
		w.Value()
	case "tool_calls", "function_call", "parts", "toolInvocations", "lc", "rawItem", "raw_item", "providerData", "callId":
		w.odd = true
		w.Value()
	default:
		if isCacheMark(key) {
			w.Omit()
			return
		}
		w.undefined(key)
	}
}

// undefined reads a member that the dialect does not define. Its JSON is content, unless it is empty. A
// number or a word is content only beside other content.
func (w *Reader) undefined(key []byte) {
	v := w.Value()
	if bytes.Equal(key, w.unknownKey) { // of duplicates the last one counts
		w.unknown = nil
	}
	switch string(v) {
	case "null", "false", `""`, "[]", "{}":
		return
	}
	if k := v.Kind(); w.unknown == nil && (k == '[' || k == '{' || k == '"') {
		w.unknown, w.unknownKey = v, key
	}
	size := weigh.JSON(v)
	w.extra.Units, w.extra.Base, w.extra.Bytes = w.extra.Units+size.Units, w.extra.Base+size.Base, w.extra.Bytes+size.Bytes
}

// beside adds the size of a member beside the content that some providers drop: none of its bytes is sure to
// be in a prompt.
func (w *Reader) beside(v codec.Raw) {
	size := weigh.JSON(v)
	w.extra.Units, w.extra.Base = w.extra.Units+size.Units, w.extra.Base+size.Base
}

// withUnknown adds undefined members to a message: as a part if it has no other content and would be left
// out, else as its size. A strict provider refuses such members, and a message with nothing else.
func (w *Reader) withUnknown(d *Dialect, m *Message) {
	m.Extra = w.extra
	if w.unknown == nil || d.Strict || slices.ContainsFunc(m.Parts, hasContent) {
		return
	}
	size := weigh.JSON(w.unknown)
	m.Extra.Units, m.Extra.Base, m.Extra.Bytes = m.Extra.Units-size.Units, m.Extra.Base-size.Base, m.Extra.Bytes-size.Bytes
	m.Parts = append(m.Parts, Part{Kind: PartOther, Raw: w.unknown, Locked: true, Aside: true})
}

func isAside(p Part) bool { return p.Aside }

// answer joins the text blocks of a result and counts its images. A block of another
// type counts with its JSON: a model reads it as text of some kind.
func (p *Part) answer(parts []Part) {
	if len(parts) == 1 && parts[0].Kind == PartText {
		p.Text, p.Quoted, p.Size = parts[0].Text, parts[0].Quoted, parts[0].Size
		return
	}
	var blocks []string
	for i := range parts {
		switch part := &parts[i]; part.Kind {
		case PartText:
			blocks = append(blocks, part.Content())
		case PartImage:
			p.has(part)
		default:
			blocks = append(blocks, string(part.Raw))
		}
	}
	p.Text = strings.Join(blocks, "\n")
}

// appendContent is the reverse of readContent: a single text without a block of
// its own is a string, anything else an array.
func appendContent(out codec.Raw, parts []Part, block func(codec.Raw, *Part) (codec.Raw, error)) (codec.Raw, error) {
	if len(parts) == 1 && parts[0].Kind == PartText && parts[0].Raw == nil {
		return parts[0].appendText(out)
	}
	return appendBlocks(out, parts, block)
}

// appendTexts is appendContent where compactd makes texts alone.
func appendTexts(parts []Part, text func(string) codec.Raw) (codec.Raw, error) {
	return appendContent(nil, parts, func(out codec.Raw, p *Part) (codec.Raw, error) {
		return appendBlock(out, p, func(p Part) (codec.Raw, error) {
			if p.Kind != PartText {
				return nil, errCannotMake
			}
			return text(p.Text), nil
		})
	})
}

// appendBlock writes the block of a part as it came with its text replaced, or one made by
// create. Text in place of a block without any, such as an image,
// becomes a text block. Of a call the arguments are replaced.
func appendBlock(out codec.Raw, p *Part, create func(Part) (codec.Raw, error)) (codec.Raw, error) {
	name := "text"
	switch {
	case p.Raw == nil:
		made, err := create(*p)
		return append(out, made...), err
	case p.Kind == PartCall:
		return codec.AppendWith(out, p.Raw, "input", func(out codec.Raw) (codec.Raw, error) { return append(out, p.Args...), nil })
	case p.Kind == PartThinking:
		name = "thinking"
	case p.Kind == PartResult:
		name = "content"
	case p.Kind == PartText && blockType(p.Raw) == "refusal":
		name = "refusal"
	case p.Kind != PartText:
		return append(out, textBlock(p.Text)...), nil
	}
	return codec.AppendWith(out, p.Raw, name, p.appendText)
}

func blockType(raw codec.Raw) string { return codec.String(codec.Get(raw, "type")) }

func textBlock(text string) codec.Raw {
	return codec.WriteObject([]codec.Member{{Name: "type", Value: codec.Raw(`"text"`)}, {Name: "text", Value: codec.Quote(text)}})
}

// arguments of a call that is made; providers refuse a call without any.
func arguments(p Part) codec.Raw {
	if p.Args == nil {
		return codec.Raw(`{}`)
	}
	return p.Args
}

func (p *Part) appendText(out codec.Raw) (codec.Raw, error) {
	return codec.AppendQuote(out, p.Text), nil
}

func (p *Part) appendArgs(out codec.Raw) (codec.Raw, error) {
	return append(out, arguments(*p)...), nil
}

// withRole is the Raw of a message, of one that is made an object with a role.
func (m *Message) withRole(r Role) codec.Raw {
	return orObject(m.Raw, codec.Member{Name: "role", Value: codec.Quote(string(r))})
}

// fields is Object for a value that may have another type: then it is skipped.
func (w *Reader) fields(member func(key []byte)) codec.Raw {
	if w.Kind() != '{' {
		return w.Value()
	}
	return w.Object(member)
}

// blocks reads the value at w, an array of blocks; anything else has none. A block that is no object, or of a kind
// that block does not know, is PartOther.
func (w *Reader) blocks(parts []Part, block func(*Reader, *Part)) (codec.Raw, []Part) {
	if w.Kind() != '[' {
		return w.Value(), nil
	}
	raw := w.Array(func() {
		from := w.Position()
		parts = append(parts, Part{Kind: PartOther})
		if p := &parts[len(parts)-1]; w.Kind() == '{' {
			block(w, p)
		} else {
			p.Raw = w.Value()
		}
		w.omitEmpty(from)
	})
	return raw, parts
}

// appendBlocks is the reverse of blocks. It writes a block as it came, unless its part was edited; block writes the
// others.
func appendBlocks(out codec.Raw, parts []Part, block func(codec.Raw, *Part) (codec.Raw, error)) (codec.Raw, error) {
	out = append(out, '[')
	for i := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		p := &parts[i]
		if p.Raw != nil && !p.Edited {
			out = append(out, p.Raw...)
		} else if out, err = block(out, p); err != nil {
			return out, err
		}
		if p.CacheMark != nil {
			out = append(append(out, ','), p.CacheMark...)
		}
	}
	return append(out, ']'), nil
}

// orObject returns raw, or an object where raw is nil.
func orObject(raw codec.Raw, other ...codec.Member) codec.Raw {
	if raw != nil {
		return raw
	}
	return codec.WriteObject(other)
}
