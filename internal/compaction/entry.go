package compaction

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"compactd/internal/events"
)

// Seq is a sequence number of the log.
type Seq uint64

// Key stands for a name (a call id, a tool, a path) where only equality counts:
// the first 8 bytes of its SHA-256, so that no history can forge a collision.
// The zero Key stands for no name.
type Key uint64

// KeyOf returns the key of a name.
func KeyOf(name string) Key {
	if name == "" {
		return 0
	}
	h := sha256.Sum256([]byte(name))
	return max(1, Key(binary.BigEndian.Uint64(h[:8])))
}

// Kind says what an entry holds.
type Kind uint8

// The kinds of entries.
const (
	KindWords      Kind = iota // everything of a message that is neither call nor result
	KindCall                   // one tool call
	KindResult                 // one tool result
	KindTruncation             // a truncation marker; in views only, never in a ledger
	KindSummary                // a summary; in views only
	KindRestored               // a hidden result that is shown again; in views only
)

// Role is who speaks, in one byte.
type Role uint8

// The roles of entries.
const (
	RoleSystem Role = iota
	RoleUser
	RoleAssistant
	RoleTool
)

// Flags are facts about an entry.
type Flags uint8

// The flags of an entry. The last two exist in views only: they are derived
// anew at each compaction.
const (
	FlagFirst    Flags = 1 << iota // first entry of its message
	FlagFailed                     // a result that is an error
	FlagRead                       // a call that reads a file, or a result known as one by its text
	FlagEmpty                      // nothing but white space, or a result told twice: it is not rendered
	FlagThinking                   // words with a model's reasoning among them: its signature covers the text
	FlagAnswer                     // a call that gets a placeholder result
	FlagCall                       // a result that gets a placeholder call
)

func (f Flags) has(x Flags) bool { return f&x != 0 }

// op is the edit in force on an entry.
type op uint8

const (
	opNone op = iota
	opClear
	opDeduplicate
	opClearOld
	opRestore // of marks only
	opTrim    // to a ceiling; the four ways to cut a text are the last
	opTail
	opHead
	opBoth
)

// set puts an edit in force on the entry.
func (e *Entry) set(x *events.Edit) {
	e.Op, e.Ceiling, e.Lines = opClear, uint32(x.Units), uint16(x.Lines)
	switch x.Op {
	case events.OpDeduplicate:
		e.Op = opDeduplicate
	case events.OpClearOld:
		e.Op = opClearOld
	case events.OpTrim:
		e.Op = trimOf(Direction(x.Direction))
	}
}

// Entry is what a ledger keeps of one part of a message: one tool call, one tool
// result, or a run of everything else. It is 96 bytes.
// See docs/adr/0001.
type Entry struct {
	Seq     Seq    // of the turn in the log
	Call    Key    // call id of a call or result; of a marker or summary the end of its range; of a restored result the place of its call
	Tool    Key    // name of the tool
	Path    Key    // file that a read reads, or that a call writes
	Variant Key    // the read's other arguments; 0 reads the whole file; of a restored result the sequence of its call
	Turn    uint32 // number of the turn, from 1
	Index   uint32 // of the message in its turn
	Part    uint32 // first part in its message
	Parts   uint32 // number of parts
	Text    uint32 // UTF-16 units of text
	JSON    uint32 // UTF-16 units of arguments and unknown blocks
	Base    uint32 // tokens of text and JSON before a provider's multiplier, by classes or counted
	Bytes   uint32 // of text and JSON
	Images  uint32
	Ceiling uint32 // most UTF-16 units that a trimmed text has, notices included

	PathUnits uint16 // length of the path, for its placeholder
	PathBase  uint16 // tokens of the path, as Base
	Lines     uint16 // most lines of a trimmed output; 0 = any
	Kind      Kind
	Role      Role
	Flags     Flags
	Op        op
}

// Measure returns the entries of one message, with estimates, none of a hidden
// one. An event is far too small for sizes to reach 4 Gi units.
func Measure(m events.Message, at Entry) []Entry { return meter{}.measure(nil, m, at) }

// measure appends the entries of a message.
func (by meter) measure(out []Entry, m events.Message, at Entry) []Entry {
	if m.Hidden {
		return out
	}
	at.Role, at.Flags = roleOf(m.Role), FlagFirst
	first, run := len(out), -1 // run is the open run of words, as an index of out
	for i := range m.Parts {
		p := &m.Parts[i]
		e := at
		e.Part, e.Parts = uint32(i), 1
		switch p.Kind {
		case events.PartCall:
			by.call(&e, p)
		case events.PartResult:
			by.result(&e, p)
		default:
			if run < 0 {
				run = len(out)
				e.Kind, e.Parts = KindWords, 0
				e.Flags |= FlagEmpty
				out = append(out, e)
				at.Flags = 0
			}
			by.words(&out[run], p)
			continue
		}
		run = -1
		out = append(out, e)
		at.Flags = 0
	}
	if len(out) == first { // a message without content keeps its place
		at.Kind, at.Flags = KindWords, FlagFirst|FlagEmpty
		out = append(out, at)
	}
	return out
}

func roleOf(r events.Role) Role {
	switch r {
	case events.RoleSystem:
		return RoleSystem
	case events.RoleAssistant:
		return RoleAssistant
	case events.RoleTool:
		return RoleTool
	default:
		return RoleUser
	}
}

func (by meter) words(e *Entry, p *events.Part) {
	e.Parts++
	switch p.Kind {
	case events.PartText:
		e.addText(by.partText(p))
		if !blank(p) {
			e.Flags &^= FlagEmpty
		}
		return
	case events.PartThinking:
		e.addText(by.partText(p))
		e.Flags |= FlagThinking
	case events.PartImage:
		e.Images++
	default:
		e.addJSON(by.json(p.Raw))
	}
	e.Flags &^= FlagEmpty
}

// blank reports whether a text is nothing but white space.
func blank(p *events.Part) bool {
	if p.Quoted == nil {
		return strings.TrimSpace(p.Text) == ""
	}
	for piece := range events.Pieces(p.Quoted) {
		if len(bytes.TrimSpace(piece)) > 0 {
			return false
		}
	}
	return true
}

func (by meter) call(e *Entry, p *events.Part) {
	e.Kind, e.Call, e.Tool = KindCall, KeyOf(p.CallID), KeyOf(p.Tool)
	e.addText(by.text(p.Tool))
	e.addJSON(by.json(p.Args))
	switch tool := plainName(p.Tool); {
	case slices.Contains(readTools, tool):
		if path, variant := readPath(p.Args); path != "" {
			by.path(e, path, variant)
		}
	case slices.Contains(writeTools, tool):
		e.Path = KeyOf(writePath(p.Args))
	}
}

func (by meter) result(e *Entry, p *events.Part) {
	e.Kind, e.Call, e.Tool = KindResult, KeyOf(p.CallID), KeyOf(p.Tool)
	e.addText(by.partText(p))
	e.Images = uint32(p.Images)
	if p.Failed {
		e.Flags |= FlagFailed
	}
	if p.CallID != "" {
		return // its call has arguments, and they say which file it is
	}
	if path := pathInText(p.Said()); path != "" {
		by.path(e, path, 0)
	}
}

// path notes which file an entry reads.
func (by meter) path(e *Entry, path string, variant Key) {
	if s := by.text(path); s.Units <= maxPathUnits {
		e.Flags |= FlagRead
		e.Path, e.Variant, e.PathUnits, e.PathBase = KeyOf(path), variant, uint16(s.Units), uint16(s.Base)
	}
}

// addText and addJSON put the size of another text into an entry. What an entry
// holds is bounded by its event.
func (e *Entry) addText(s size) {
	e.Text += uint32(s.Units)
	e.Base += uint32(s.Base)
	e.Bytes += uint32(s.Bytes)
}

func (e *Entry) addJSON(s size) {
	e.JSON += uint32(s.Units)
	e.Base += uint32(s.Base)
	e.Bytes += uint32(s.Bytes)
}

// compare orders an entry and a position by their place in the session.
func (e *Entry) compare(p events.Position) int {
	return cmp.Or(
		cmp.Compare(int64(e.Turn), p.Turn),
		cmp.Compare(int64(e.Index), p.Index),
		cmp.Compare(int64(e.Part), p.Part))
}

// position names the entry in edits.
func (e *Entry) position() events.Position {
	return events.Position{Turn: int64(e.Turn), Index: int64(e.Index), Part: int64(e.Part)}
}

// inherit takes over what the call of a result says.
func (e *Entry) inherit(call *Entry) {
	e.Tool = call.Tool
	if call.Flags.has(FlagRead) {
		e.Flags |= FlagRead
		e.Path, e.Variant, e.PathUnits, e.PathBase = call.Path, call.Variant, call.PathUnits, call.PathBase
	}
}

// sameMessage reports whether two entries belong to one message. Each restored
// result is a message of its own.
func (e *Entry) sameMessage(x *Entry) bool {
	if e.Kind == KindRestored || x.Kind == KindRestored {
		return false
	}
	return e.Seq == x.Seq && e.Index == x.Index && (e.Kind == KindTruncation) == (x.Kind == KindTruncation)
}

// end is the position of the last message that the entry stands for: its own, or
// the last of the range behind a marker or summary.
func (e *Entry) end() events.Position {
	if (e.Kind == KindTruncation || e.Kind == KindSummary) && e.Call != 0 {
		return events.Position{Turn: int64(e.Call >> 32), Index: int64(uint32(e.Call))}
	}
	return e.position()
}

// covers makes the entry stand for a range of messages.
func (e *Entry) covers(first, last events.Position) {
	e.Turn, e.Index, e.Part = uint32(first.Turn), uint32(first.Index), uint32(first.Part)
	e.Call = Key(last.Turn)<<32 | Key(uint32(last.Index))
}
