package dialect

import (
	"bytes"
	"slices"

	"compactd/internal/events/codec"
	"compactd/internal/events/weigh"
)

// Reader walks messages. Where it scans them, texts of parts stay quoted and are measured,
// and parts are taken from lists that are used again.
type Reader struct {
	codec.Walker
	Into *Lists // nil where it reads

	odd, pin bool // see [Message]

	unknown    codec.Raw  // the first member of the message that its dialect does not define, nil without
	unknownKey []byte     // its name
	extra      weigh.Size // of all such members
}

// text gives a part the text of a JSON string; it is false for any other value.
func (w *Reader) text(p *Part, text codec.Measured) (ok bool) {
	if w.Into == nil {
		if p.Text, ok = codec.Text(text.Raw); ok {
			p.Source = Span{text.End - len(text.Raw), text.End}
		}
		return ok
	}
	if ok = text.Raw.Kind() == '"'; ok {
		p.Quoted, p.Size = text.Raw, text.Size
	}
	return ok
}

// plain makes a part with the text of a JSON string a PartText; any other value changes nothing.
func (w *Reader) plain(p *Part, text codec.Measured) {
	if w.text(p, text) {
		p.Kind = PartText
	}
}

// room is where the parts of a message go, and innerRoom those of a result, which are
// joined: lists that are used again where messages are scanned.
func (w *Reader) room() []Part {
	if w.Into == nil {
		return nil
	}
	return w.Into.room()
}

func (w *Reader) innerRoom() []Part {
	if w.Into == nil {
		return nil
	}
	return w.Into.inner[:0]
}

// call gives a part its call id, and notes if there is none.
func (w *Reader) call(p *Part, id codec.Raw) {
	if w.Into == nil {
		p.CallID, _ = codec.Text(id)
		p.NoID = p.CallID == ""
		return
	}
	p.Call = w.Into.key(codec.TextBytes(id))
	p.NoID = p.Call == 0
}

// tool gives a part the name of its tool.
func (w *Reader) tool(p *Part, name codec.Raw) {
	if w.Into == nil {
		p.Tool, _ = codec.Text(name)
	} else {
		p.Tool = w.Into.name(codec.TextBytes(name))
	}
}

// Lists is memory for messages that are scanned. The zero value is ready. It is for one
// goroutine.
type Lists struct {
	parts []Part            // of messages
	inner []Part            // of a result
	names map[string]string // of tools
	id    []byte            // of the call read last, and its key
	idKey Key
}

// Reset gives the parts of all messages free.
func (l *Lists) Reset() { l.parts = l.parts[:0] }

// Keep keeps the parts of a message that was read, until the next Reset.
func (l *Lists) Keep(m *Message) {
	if n := len(l.parts) + len(m.Parts); n <= cap(l.parts) {
		l.parts = l.parts[:n]
	}
}

// Lists of parts.
const (
	fewParts  = 16 // more than most messages have
	manyParts = 64
)

// room is a list for the parts of the next message, behind those of the ones before.
func (l *Lists) room() []Part {
	if cap(l.parts)-len(l.parts) < fewParts {
		l.parts = make([]Part, 0, manyParts)
	}
	return l.parts[len(l.parts):]
}

// key is [CallKeyOf] the id of a call: a result follows its call.
func (l *Lists) key(id []byte) Key {
	if !bytes.Equal(l.id, id) {
		l.id, l.idKey = append(l.id[:0], id...), CallKeyOf(id)
	}
	return l.idKey
}

// Bounds of what is remembered of names of tools.
const (
	maxNames    = 1 << 10
	maxToolName = 1 << 6
)

// name is a name of a tool as a string: an agent has few.
func (l *Lists) name(b []byte) string {
	if s, ok := l.names[string(b)]; ok || len(b) == 0 {
		return s
	}
	s := string(b)
	if len(b) <= maxToolName {
		if l.names == nil || len(l.names) == maxNames {
			l.names = map[string]string{}
		}
		l.names[s] = s
	}
	return s
}

// Complete reports whether all calls and results of a message have the ids that pair them.
func (m *Message) Complete() bool {
	return !slices.ContainsFunc(m.Parts, func(p Part) bool { return p.NoID })
}

// role is what the dialect names so, "" for any other name.
func (d *Dialect) role(name codec.Raw) Role { return d.roles[string(codec.TextBytes(name))] }

// readBlocks reads a message of a role and blocks: read reads these, and other all other members.
func (d *Dialect) readBlocks(w *Reader, read func() (codec.Raw, []Part), other func(key []byte)) (m Message, role, blocks codec.Raw) {
	w.Object(func(key []byte) {
		switch string(key) {
		case "role":
			role = w.Value()
		case d.blocks:
			blocks, m.Parts = read()
		default:
			other(key)
		}
	})
	m.Role = d.role(role)
	return m, role, blocks
}

// complete returns a message that was read, or what it lacks. content reports whether its
// content is of a type that its dialect allows.
func (w *Reader) complete(m Message, content bool) (Message, error) {
	switch {
	case w.Failed():
		return m, ErrNoMessage
	case m.Role == "":
		return m, ErrNoRole
	case !content:
		return m, ErrNoContent
	}
	return m, nil
}
