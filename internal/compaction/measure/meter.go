package measure

import (
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/weigh"
)

// densest is the largest number of tokens in a UTF-16 unit of valid text.
const densest = 2

// Weigh returns the UTF-16 units of a text, and its tokens before a provider's multiplier.
func Weigh(s string) (units, base int64) {
	size := weigh.Text(s)
	return size.Units, size.Base
}

// WeighJSON is [Weigh] for JSON; see [weigh.JSON].
func WeighJSON[S ~string | ~[]byte](s S) (units, base int64) {
	size := weigh.JSON(s)
	return size.Units, size.Base
}

// Meter measures texts. Without a counter it estimates.
type Meter struct {
	Counter weigh.Counter
	Pins    Patterns // of messages that are pinned
}

// Text measures a text.
func (by Meter) Text(s string) weigh.Size {
	size := weigh.Text(s)
	if by.Counter != nil {
		size.Base = by.Counter.Count(s)
	}
	return size
}

// partText measures the text of a part.
func (by Meter) partText(p *dialect.Part) weigh.Size {
	if p.Quoted == nil || by.Counter != nil {
		return by.Text(p.Content())
	}
	return p.Size
}

func (by Meter) json(raw codec.Raw) weigh.Size {
	size := weigh.JSON(raw)
	if by.Counter != nil {
		size.Base = by.Counter.Count(string(raw))
	}
	return size
}

// Field is the size of a system prompt or of tools: of a string's text, of anything else's JSON; nil for
// none.
func (by Meter) Field(raw codec.Raw) *weigh.Size {
	if raw == nil {
		return nil
	}
	out := by.json(raw)
	if s, ok := codec.Text(raw); ok {
		out = by.Text(s)
	}
	out.Newlines = 0 // not used
	return &out
}

// Measure returns the entries of one message, with estimates; a hidden message has none. An event is far too
// small for sizes to reach 4 Gi units.
func Measure(m dialect.Message, at Entry) []Entry { return Meter{}.Measure(nil, &m, at) }

// Measure appends the entries of a message.
func (by Meter) Measure(out []Entry, m *dialect.Message, at Entry) []Entry {
	if m.Hidden {
		return out
	}
	var pin Flags
	if m.Pinned || by.Pins.matchesOne(m) {
		pin = FlagPinned
	}
	at.Role, at.Flags = roleOf(m.Role), FlagFirst|pin
	first, run := len(out), -1 // run is the open run of words, as an index of out
	for i := 0; i < len(m.Parts); i++ {
		p := &m.Parts[i]
		e := at
		e.Part, e.Parts = uint32(i), 1
		switch p.Kind {
		case dialect.PartCall:
			by.call(&e, p)
		case dialect.PartResult:
			by.result(&e, p)
		case dialect.PartImage: // an entry of its own, which can be cleared alone
			e.Kind, e.Parts = KindWords, 0
			by.words(&e, p)
		default:
			if p.Kind == dialect.PartOther && p.Hosted.Kind > 0 {
				by.hosted(&e, m.Parts[i:])
				i += int(e.Parts) - 1
				break
			}
			if run < 0 {
				run = len(out)
				e.Kind, e.Parts = KindWords, 0
				e.Flags |= FlagEmpty
				out = append(out, e)
				at.Flags = pin
			}
			by.words(&out[run], p)
			continue
		}
		run = -1
		out = append(out, e)
		at.Flags = pin
	}
	if len(out) == first { // a message without content keeps its place
		at.Kind, at.Flags = KindWords, FlagFirst|FlagEmpty|pin
		out = append(out, at)
	}
	if m.Extra.Units > 0 {
		beside := first
		for beside+1 < len(out) && out[beside].Kind == KindResult { // which may be cleared
			beside++
		}
		out[beside].addJSON(m.Extra)
	}
	return out
}

func roleOf(r dialect.Role) Role {
	switch r {
	case dialect.RoleSystem:
		return RoleSystem
	case dialect.RoleAssistant:
		return RoleAssistant
	case dialect.RoleTool:
		return RoleTool
	default:
		return RoleUser
	}
}

func (by Meter) words(e *Entry, p *dialect.Part) {
	e.Parts++
	if p.Locked {
		e.Flags |= FlagThinking
		if p.Kind == dialect.PartOther && e.Role == RoleSystem { // an encrypted summary: see events/dialect/responses.go
			e.Flags |= FlagPinned
		}
	}
	switch p.Kind {
	case dialect.PartText:
		if e.addText(by.partText(p)); p.Hosted.Kind == dialect.HostedCites {
			e.Variant = dialect.Key(dialect.HostedCites)
		}
		if !p.Blank() {
			e.Flags &^= FlagEmpty
		}
		return
	case dialect.PartThinking:
		if p.Aside {
			e.addJSON(by.json(p.Raw))
		} else {
			e.addText(by.partText(p))
		}
		e.Flags |= FlagThinking
	case dialect.PartImage:
		e.setMedia(1, p.Papers, p.Media)
	default:
		e.addJSON(by.json(p.Raw))
	}
	e.Flags &^= FlagEmpty
}

// hosted measures the run of parts of the provider's tools at the beginning of a list, or only its first part
// if its calls have no results there.
func (by Meter) hosted(e *Entry, parts []dialect.Part) {
	h := &parts[0].Hosted
	e.Kind, e.Call, e.Tool, e.Variant = KindWords, h.ID, h.Tool, dialect.Key(h.Kind)
	if n := dialect.HostedEnd(parts, 0); n > 0 {
		e.Parts, e.Variant = uint32(n), 0
	}
	for i := range e.Parts {
		p := &parts[i]
		e.addJSON(by.json(p.Raw))
		switch tool := p.Hosted.Tool; {
		case e.Parts == 1 || tool == 0 || tool == e.Tool || tool == e.Path || tool == e.Variant:
		case e.Path == 0:
			e.Path = tool
		default:
			e.Variant = tool
		}
	}
}

func (by Meter) call(e *Entry, p *dialect.Part) {
	e.Kind, e.Call, e.Tool = KindCall, p.CallKey(), dialect.KeyOf(p.Tool)
	if p.Locked {
		e.Flags |= FlagThinking
	}
	e.addText(by.Text(p.Tool))
	e.addJSON(by.json(p.Args))
	switch path, variant, changes := p.File(); {
	case changes:
		e.Path = dialect.KeyOf(path)
	case len(path) > 0:
		by.path(e, path, variant)
	case 0 < len(p.Args) && len(p.Args) <= maxArgsKey:
		e.Variant = dialect.KeyOf(string(p.Args))
	}
}

// maxArgsKey bounds the arguments that distinguish a call from others of its tool, in bytes.
const maxArgsKey = 1 << 10

func (by Meter) result(e *Entry, p *dialect.Part) {
	e.Kind, e.Call, e.Tool = KindResult, p.CallKey(), dialect.KeyOf(p.Tool)
	size := by.partText(p)
	e.addText(size)
	e.Extent = uint32(size.Newlines)
	e.setMedia(p.Images, p.Papers, p.Media)
	if p.Failed || p.StatesError() {
		e.Flags |= FlagFailed
	}
	if p.Locked {
		e.Flags |= FlagThinking
	}
	if e.Call != 0 {
		e.Variant = p.ContentKey()
		return // its call has arguments, and they name the file
	}
	if path, _, _ := p.File(); len(path) > 0 {
		by.path(e, path, 0)
	}
}

// path notes the file that an entry reads.
func (by Meter) path(e *Entry, path string, variant dialect.Key) {
	if s := by.Text(path); s.Units <= maxPathUnits {
		e.Flags |= FlagRead
		e.Path, e.Variant, e.PathUnits, e.PathBase = dialect.KeyOf(path), variant, uint16(s.Units), uint16(s.Base)
	}
}

// addText and addJSON add the size of a text to an entry. An entry is bounded by its event.
func (e *Entry) addText(s weigh.Size) { e.add(&e.Text, s) }
func (e *Entry) addJSON(s weigh.Size) { e.add(&e.JSON, s) }

func (e *Entry) add(units *uint32, s weigh.Size) {
	*units += uint32(s.Units)
	e.Base += uint32(s.Base)
	e.Bytes += uint32(s.Bytes)
}
