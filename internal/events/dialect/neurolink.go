package dialect

import (
	"cmp"
	"slices"
	"strings"

	"compactd/internal/events/codec"
)

var neurolink = Dialect{
	Name: "neurolink", Roles: "user, assistant, tool_call, tool_result, system",
	Exchange: ByWords, Results: RoleTool, Anonymous: true,
	read: readNeuroLink, append: appendMembers(writeNeuroLink),
}

// neurolinkMessage is what a message of NeuroLink consists of: a tool call and a
// tool result are messages of their own.
type neurolinkMessage struct {
	role, tool, args codec.Raw
	content          codec.Measured

	callID   codec.Raw // as the sender named it
	metaID   codec.Raw // metadata.toolCallId
	failed   bool      // result.success is false
	hidden   bool      // another message replaces it
	replaces bool      // it replaces other messages
}

func readNeuroLink(_ *Dialect, w *Reader) (Message, error) {
	var n neurolinkMessage
	n.read(w)
	if w.Failed() {
		return Message{}, ErrNoMessage
	}
	if n.hidden {
		return Message{Hidden: true}, nil
	}
	kind := n.content.Raw.Kind()
	text := Part{Kind: PartText}
	w.text(&text, n.content)
	absent := kind == 0 || kind == 'n'
	if !absent && !slices.Contains([]codec.Kind{'"', '[', '{'}, kind) {
		return Message{}, ErrNoContent
	}
	switch string(codec.TextBytes(n.role)) {
	case "user":
		return n.words(RoleUser, text)
	case "system":
		if n.replaces { // whatever its role, it has its place in the conversation
			return n.words(RoleUser, text)
		}
		return n.words(RoleSystem, text)
	case "assistant":
		return n.words(RoleAssistant, text)
	case "tool_call":
		p := n.part(w, PartCall)
		p.Args = n.args
		m := Message{Role: RoleAssistant}
		if !absent && string(n.content.Raw) != `""` {
			m, _ = n.words(RoleAssistant, text)
		}
		m.Parts = append(m.Parts, p)
		return m, nil
	case "tool_result":
		p := n.part(w, PartResult)
		p.Text, p.Quoted, p.Size, p.Failed = text.Text, text.Quoted, text.Size, n.failed
		if kind == '[' || kind == '{' {
			p.Text, p.Raw = string(n.content.Raw), n.content.Raw
		}
		return Message{Role: RoleTool, Parts: []Part{p}}, nil
	default:
		return Message{}, ErrNoRole
	}
}

func (n *neurolinkMessage) read(w *Reader) {
	w.Object(func(key []byte) {
		switch string(key) {
		case "role":
			n.role = w.Value()
		case "content":
			from := w.Position()
			n.content = w.Text()
			w.sameContent(from)
		case "tool":
			n.tool = w.Value()
		case "args":
			n.args = w.data()
		case "toolCallId", "tool_call_id":
			n.callID = w.CallID()
		case "metadata":
			n.metadata(w)
			w.Omitted()
		case "result":
			success := memberAt(w, "success")
			n.failed = success.Kind() == 'f'
		case "isTruncationMarker":
			n.replaces = isTrue(w.Value()) || n.replaces
		case "sessionId", "userId", "condenseId", "truncationId": // of the store, not of the message
			w.Value()
		case "condenseParent", "truncationParent":
			n.hidden = codec.String(w.Value()) != "" || n.hidden
		default:
			w.other(key)
		}
	})
}

func (n *neurolinkMessage) metadata(w *Reader) {
	if w.Kind() != '{' {
		w.Value()
		return
	}
	w.Object(func(key []byte) {
		switch v := w.Value(); string(key) {
		case "toolCallId":
			n.metaID = v
		case "isSummary":
			n.replaces = isTrue(v) || n.replaces
		}
	})
}

// memberAt consumes the value at w, and returns its member of that name.
func memberAt(w *Reader, name string) (v codec.Raw) {
	if w.Kind() != '{' {
		w.Value()
		return nil
	}
	w.Object(func(key []byte) {
		if x := w.data(); string(key) == name {
			v = x
		}
	})
	return v
}

// words is a message without call or result. A content that is not text stays.
func (n *neurolinkMessage) words(r Role, text Part) (Message, error) {
	switch n.content.Raw.Kind() {
	case '"':
		return Message{Role: r, Parts: []Part{text}}, nil
	case '[', '{':
		return Message{Role: r, Parts: []Part{{Kind: PartOther, Raw: n.content.Raw}}}, nil
	default:
		return Message{}, ErrNoContent
	}
}

func (n *neurolinkMessage) part(w *Reader, k PartKind) Part {
	p := Part{Kind: k}
	w.tool(&p, n.tool)
	id := n.callID
	if id.Kind() != '"' {
		id = n.metaID
	}
	w.call(&p, id)
	p.NoID = false
	return p
}

// writeNeuroLink puts the parts of m into the members of its Raw. An edited
// message, and a call or result that is made, has a note in its metadata.
func writeNeuroLink(m Message, ms []codec.Member) ([]codec.Member, error) {
	content, tool, err := neurolinkContent(m.Parts)
	if err != nil {
		return nil, err
	}
	if ms == nil {
		return createNeuroLink(m, content, tool), nil
	}
	if neurolinkRole(m.Role, tool) != neurolinkRole(m.Role, toolOf(ms)) {
		return nil, errMisplaced // without its call a message is to be dropped, not edited
	}
	if tool != nil && tool.Kind == PartCall && tool.Edited {
		ms = codec.SetMember(ms, "args", tool.Args)
	}
	if was := codec.Lookup(ms, "content"); was != nil || string(content) != `""` {
		ms = codec.SetMember(ms, "content", content)
	}
	return codec.SetMember(ms, "metadata", truncated(codec.Lookup(ms, "metadata"))), nil
}

// neurolinkContent joins the text parts, or returns the one other content, with the call or result, nil
// without.
func neurolinkContent(parts []Part) (content codec.Raw, tool *Part, err error) {
	var all []string
	for i, p := range parts {
		if p.Kind == PartCall || p.Kind == PartResult {
			if tool != nil {
				return nil, nil, errMisplaced
			}
			tool = &parts[i]
		}
		switch {
		case p.Kind == PartCall:
		case p.Raw != nil && !p.Edited:
			if content != nil {
				return nil, nil, errMisplaced
			}
			content = p.Raw
		case p.Kind == PartText || p.Kind == PartResult || p.Edited:
			all = append(all, p.Text)
		default:
			return nil, nil, errCannotMake
		}
	}
	switch {
	case content == nil:
		return codec.Quote(strings.Join(all, "\n")), tool, nil
	case len(all) > 0:
		return nil, nil, errMisplaced
	}
	return content, tool, nil
}

func createNeuroLink(m Message, content codec.Raw, tool *Part) []codec.Member {
	var ms []codec.Member
	add := func(name string, value codec.Raw) {
		if value != nil {
			ms = append(ms, codec.Member{Name: name, Value: value})
		}
	}
	text := func(name, value string) bool {
		if value != "" {
			add(name, codec.Quote(value))
		}
		return value != ""
	}
	text("id", m.ID)
	text("role", neurolinkRole(cmp.Or(m.As, m.Role), tool))
	add("content", content)
	add("timestamp", m.Timestamp)
	if text("condenseId", m.Condensation) {
		add("metadata", codec.Raw(`{"isSummary":true}`))
	}
	if text("truncationId", m.Truncation) {
		add("isTruncationMarker", codec.Raw(`true`))
	}
	if tool != nil {
		text("tool", tool.Tool)
		add("args", tool.Args) // optional here, unlike in the other dialects
		text("toolCallId", tool.CallID)
		add("metadata", truncated(nil))
	}
	return ms
}

// neurolinkRole is the role in the words of the dialect.
func neurolinkRole(r Role, tool *Part) string {
	switch {
	case tool == nil:
		return string(r)
	case tool.Kind == PartCall:
		return "tool_call"
	default:
		return "tool_result"
	}
}

// toolOf is the kind of a message by its members: a call, a result, or nil for neither.
func toolOf(ms []codec.Member) *Part {
	switch role, _ := codec.Text(codec.Lookup(ms, "role")); role {
	case "tool_call":
		return &Part{Kind: PartCall}
	case "tool_result":
		return &Part{Kind: PartResult}
	default:
		return nil
	}
}

// truncated returns metadata that marks the message as changed.
func truncated(metadata codec.Raw) codec.Raw {
	out, err := codec.WithMember(metadata, "truncated", codec.Raw(`true`))
	if err != nil { // there was none, or no object
		return codec.Raw(`{"truncated":true}`)
	}
	return out
}
