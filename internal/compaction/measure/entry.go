package measure

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/events/media"
	"compactd/internal/events/traits"
)

// Seq is a sequence number of the log.
type Seq uint64

// KeysOf returns the keys of names.
func KeysOf(names []string) []dialect.Key {
	out := make([]dialect.Key, len(names))
	for i, n := range names {
		out[i] = dialect.KeyOf(n)
	}
	return out
}

// Kind is the kind of an entry's content.
type Kind uint8

// The kinds of entries.
const (
	KindWords      Kind = iota // everything of a message that is neither call nor result
	KindCall                   // one tool call
	KindResult                 // one tool result
	KindTruncation             // a truncation notice; in views only, never in a ledger
	KindSummary                // a summary; in views only
	KindRestored               // a hidden result that is restored; in views only
)

// Role is the role of a message, in one byte.
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

// The flags of an entry. FlagAnswer and FlagCall exist in views only: they are
// derived again at each compaction.
const (
	FlagFirst    Flags = 1 << iota // first entry of its message
	FlagFailed                     // a result that is an error
	FlagRead                       // a call that reads a file, or a result recognised as one by its text
	FlagEmpty                      // only white space, or a duplicate result: it is not rendered
	FlagThinking                   // content that cannot be edited: a model's reasoning, or another locked part
	FlagAnswer                     // a call that gets a placeholder result
	FlagCall                       // a result that gets a placeholder call
	FlagPinned                     // of a message that stays in view while it fits
)

// Has reports whether any of the flags x is set.
func (f Flags) Has(x Flags) bool { return f&x != 0 }

// Op is the edit in force on an entry.
type Op uint8

// The edits that stages make.
const (
	OpNone Op = iota
	OpClear
	OpDeduplicate
	OpClearOld
	OpRestore // in edit records only
	OpTrim    // to a ceiling; the ops after it, up to opBoth, also cut a text
	opTail
	opHead
	opBoth
	OpKeep // in edit records only
	opLines
)

// Trims reports whether an op cuts a text.
func (o Op) Trims() bool { return o >= OpTrim && o <= opBoth || o == opLines }

// TrimOf returns the op of a trim with a direction.
func TrimOf(d Direction) Op {
	switch d {
	case KeepTail:
		return opTail
	case KeepHead:
		return opHead
	case KeepBoth:
		return opBoth
	case KeepLines:
		return opLines
	default:
		return OpTrim
	}
}

// Direction is the direction of a cut, "" for a ceiling alone.
func (o Op) Direction() Direction {
	switch o {
	case opTail:
		return KeepTail
	case opHead:
		return KeepHead
	case opBoth:
		return KeepBoth
	case opLines:
		return KeepLines
	default:
		return ""
	}
}

// Entry is one part of a message in a ledger: one tool call, one tool result, or a run of everything else. It
// is 96 bytes. Parallel results that share a message are cleared one by one.
type Entry struct {
	Seq     Seq         // of the turn in the log
	Call    dialect.Key // call id of a call or result; of a placeholder the end of its range; of a restored result the place of its call
	Tool    dialect.Key // name of the tool
	Path    dialect.Key // file that a read reads, or that a call writes
	Variant dialect.Key // the read's other arguments; 0 reads the whole file; of a restored result the sequence of its call; of another call its arguments, 0 if they are long; of another result with an id its text; of words see [Entry.Hosted]; of a summary see [Entry.Spares]
	Turn    uint32      // number of the turn, from 1
	Index   uint32      // of the message in its turn
	Part    uint32      // first part in its message
	Parts   uint32      // number of parts
	Text    uint32      // UTF-16 units of text
	JSON    uint32      // UTF-16 units of arguments and unknown blocks
	Base    uint32      // tokens of text and JSON before a provider's multiplier, by classes or counted
	Bytes   uint32      // of text and JSON
	Ceiling uint32      // largest UTF-16 size of a trimmed text, notices included

	Extent uint32 // of an entry with images their mean width and height, 16 bits each; of another result its newlines

	PathUnits uint16 // length of the path, for its placeholder
	PathBase  uint16 // tokens of the path, as Base
	Lines     uint16 // largest number of lines of a trimmed output; 0 = any
	Images    uint16 // and documents
	Documents uint16 // of Images
	Pages     uint16 // of documents
	Kind      Kind
	Role      Role
	Flags     Flags
	Op        Op
}

// HeldEntry is the size of an entry in memory, in bytes; a test compares it with the type.
const HeldEntry = 96

// Set puts an edit in force on the entry.
func (e *Entry) Set(x *events.Edit) {
	e.Op, e.Ceiling, e.Lines = OpClear, uint32(x.Units), uint16(x.Lines)
	switch x.Op {
	case events.OpDeduplicate:
		e.Op = OpDeduplicate
	case events.OpClearOld:
		e.Op = OpClearOld
	case events.OpTrim:
		e.Op = TrimOf(Direction(x.Direction))
	}
}

// Compare orders an entry and a position by their place in the session.
func (e *Entry) Compare(p events.Position) int {
	return cmp.Or(
		cmp.Compare(int64(e.Turn), p.Turn),
		cmp.Compare(int64(e.Index), p.Index),
		cmp.Compare(int64(e.Part), p.Part))
}

// Position names the entry in edits.
func (e *Entry) Position() events.Position {
	return events.Position{Turn: int64(e.Turn), Index: int64(e.Index), Part: int64(e.Part)}
}

// MessageOf drops the part of a position.
func MessageOf(p events.Position) events.Position { p.Part = 0; return p }

// Inherit takes over the facts of a result's call.
func (e *Entry) Inherit(call *Entry) {
	e.Tool = call.Tool
	if call.Flags.Has(FlagRead) {
		e.Flags |= FlagRead
		e.Path, e.Variant, e.PathUnits, e.PathBase = call.Path, call.Variant, call.PathUnits, call.PathBase
	}
}

// SameMessage reports whether two entries belong to one message. Each restored
// result is a message of its own.
func (e *Entry) SameMessage(x *Entry) bool {
	if e.Kind == KindRestored || x.Kind == KindRestored {
		return false
	}
	return e.Seq == x.Seq && e.Index == x.Index && (e.Kind == KindTruncation) == (x.Kind == KindTruncation)
}

// Called reports whether an entry is a call, or a result with a placeholder call, under an id.
func (e *Entry) Called() bool {
	return e.Call != 0 && !e.Flags.Has(FlagEmpty) && (e.Kind == KindCall || e.Kind == KindResult && e.Flags.Has(FlagCall))
}

// NeedsText reports whether a rendering of the entry needs more than its original message.
func (e *Entry) NeedsText() bool {
	return e.Kind >= KindTruncation || e.Op != OpNone || e.Flags.Has(FlagEmpty|FlagThinking|FlagAnswer|FlagCall)
}

// End is the position of the last message that the entry represents: its own, or
// the last of the range behind a truncation notice or summary.
func (e *Entry) End() events.Position {
	if (e.Kind == KindTruncation || e.Kind == KindSummary) && e.Call != 0 {
		return events.Position{Turn: int64(e.Call >> 32), Index: int64(uint32(e.Call))}
	}
	return e.Position()
}

// Covers makes the entry represent a range of messages.
func (e *Entry) Covers(first, last events.Position) {
	e.Turn, e.Index, e.Part = uint32(first.Turn), uint32(first.Index), uint32(first.Part)
	e.Call = dialect.Key(last.Turn)<<32 | dialect.Key(uint32(last.Index))
}

// CallSeq is the sequence of the turn that holds the call of a restored result, 0
// if it has none.
func (e *Entry) CallSeq() Seq { return Seq(e.Variant) }

// Spares are spare lines of a summary by index: those in its message.
type Spares [events.MaxSpare / 64]uint64

// Set adds line i.
func (s *Spares) Set(i int) { s[i/64] |= 1 << (i % 64) }

// SparesOf returns the spares with these indexes.
func SparesOf(list []int64) (s Spares) {
	for _, i := range list {
		if 0 <= i && i < events.MaxSpare {
			s.Set(int(i))
		}
	}
	return s
}

// List returns the indexes in order.
func (s *Spares) List() (out []int64) {
	for w, word := range s {
		for ; word > 0; word &= word - 1 {
			out = append(out, int64(w*64+bits.TrailingZeros64(word)))
		}
	}
	return out
}

// Spares are the spare lines in the message of a summary.
func (e *Entry) Spares() Spares { return Spares{uint64(e.Tool), uint64(e.Path), uint64(e.Variant)} }

// SetSpares sets them. A summary has neither tool nor file.
func (e *Entry) SetSpares(s Spares) {
	e.Tool, e.Path, e.Variant = dialect.Key(s[0]), dialect.Key(s[1]), dialect.Key(s[2])
}

// TruncationAt returns the truncation notice for a range that begins with e.
func TruncationAt(e *Entry) Entry {
	return Entry{
		Turn: e.Turn, Index: e.Index, Part: e.Part,
		Kind: KindTruncation, Role: RoleUser, Flags: FlagFirst, Text: uint32(UnitsOf(TruncateText)),
	}
}

// With is the entry with a placeholder for its counterpart.
func (e Entry) With(o events.Op) Entry {
	if o == events.OpAnswer {
		e.Flags |= FlagAnswer
	} else {
		e.Flags |= FlagCall
	}
	return e
}

// Whole reports whether an entry is a tool result that still has its content, or a part of it.
func (e *Entry) Whole() bool {
	return e.Kind == KindResult && (e.Op == OpNone || e.Op.Trims()) && !e.Flags.Has(FlagThinking)
}

// Hosted reports whether an entry is a run of calls of the provider's own tools with all their results: it is
// cleared as a whole. Call is the first call's; Tool, Path and Variant are its first three tools.
func (e *Entry) Hosted() bool { return e.Kind == KindWords && e.Call != 0 && e.Parts > 1 }

// HostedHalf is the kind of a half whose other half does not follow it in its message, 0 for any other entry.
func (e *Entry) HostedHalf() dialect.HostedKind {
	if e.Kind != KindWords || e.Call == 0 || e.Parts > 1 {
		return 0
	}
	return dialect.HostedKind(e.Variant)
}

// Cites reports whether an entry is words that refer to results of the provider's tools.
func (e *Entry) Cites() bool {
	return e.Kind == KindWords && e.Call == 0 && e.Variant == dialect.Key(dialect.HostedCites)
}

// Clearable reports whether a placeholder can replace the content of an entry: results of the client's or the
// provider's tools.
func (e *Entry) Clearable() bool { return e.Whole() || e.Hosted() && e.Op == OpNone }

// Of reports whether the tool of an entry, or one of its tools, is in a list.
func (e *Entry) Of(tools []dialect.Key) bool {
	in := func(tool dialect.Key) bool { return tool != 0 && slices.Contains(tools, tool) }
	return in(e.Tool) || e.Hosted() && (in(e.Path) || in(e.Variant))
}

// Reads reports whether an entry is the content of a file.
func (e *Entry) Reads() bool { return e.Tried() && !e.Flags.Has(FlagFailed) }

// Tried reports whether an entry is the result of reading a file: the content, or the reason why there is
// none.
func (e *Entry) Tried() bool { return e.Whole() && e.Op == OpNone && e.Flags.Has(FlagRead) }

// Cuttable reports whether the text of an entry may be cut: a result without images, the arguments of a call,
// or words of a user or assistant without reasoning or unknown blocks.
func (e *Entry) Cuttable() bool {
	switch {
	case e.Flags.Has(FlagEmpty|FlagThinking) || e.Role == RoleSystem || e.Op != OpNone && !e.Op.Trims():
		return false
	case e.Kind == KindResult:
		return e.Images == 0
	case e.Kind == KindCall:
		return true
	default:
		return e.Kind == KindWords && e.JSON == 0
	}
}

// Newlines is the number of newlines of a result.
func (e *Entry) Newlines() int64 {
	if e.Images > 0 {
		return 0
	}
	return int64(e.Extent)
}

// Media is the shape of the images and documents of an entry.
func (e *Entry) Media() media.Shape {
	if e.Images == 0 {
		return media.Shape{}
	}
	return media.Shape{Width: uint16(e.Extent >> 16), Height: uint16(e.Extent), Pages: e.Pages}
}

// setMedia gives an entry images and documents of a shape.
func (e *Entry) setMedia(n, documents int, s media.Shape) {
	if n > 0 {
		e.Images, e.Documents = uint16(min(n, math.MaxUint16)), uint16(min(documents, math.MaxUint16))
		e.Extent, e.Pages = uint32(s.Width)<<16|uint32(s.Height), s.Pages
	}
}

// IsMedia reports whether an entry is an image or document of a message, and nothing else.
func (e *Entry) IsMedia() bool {
	return e.Kind == KindWords && e.Images > 0 && e.Text == 0 && e.JSON == 0
}

// MediaCount counts media in view.
type MediaCount struct {
	Images    int // documents not counted
	Large     int // images with a side of more than [traits.LargeSide]
	Documents int
	Pages     int // of documents, at least one each
}

// Count counts the media of an entry in view. Several images of a result count with their mean size.
func (e *Entry) Count() (c MediaCount) {
	if e.Images == 0 || e.Op != OpNone && !(e.Kind == KindWords && e.Op.Trims()) || e.Flags.Has(FlagEmpty) {
		return c
	}
	c.Documents = int(e.Documents)
	c.Images, c.Pages = int(e.Images)-c.Documents, max(int(e.Pages), c.Documents)
	if s := e.Media(); max(s.Width, s.Height) > traits.LargeSide {
		c.Large = c.Images
	}
	return c
}

// Add returns the sum of two counts.
func (c MediaCount) Add(x MediaCount) MediaCount {
	return MediaCount{c.Images + x.Images, c.Large + x.Large, c.Documents + x.Documents, c.Pages + x.Pages}
}

// Less returns the difference of two counts.
func (c MediaCount) Less(x MediaCount) MediaCount {
	return MediaCount{c.Images - x.Images, c.Large - x.Large, c.Documents - x.Documents, c.Pages - x.Pages}
}

// CountMedia counts the media of a view.
func CountMedia(view []Entry) (c MediaCount) {
	for i := range view {
		c = c.Add(view[i].Count())
	}
	return c
}

// Total is the number for [traits.Media.Total].
func (c MediaCount) Total() int { return c.Images + c.Pages }

// Over reports whether a provider refuses the number of media.
func (c MediaCount) Over(m traits.Media) bool {
	return m.Total != 0 && c.Total() > max(m.Total, 0) || m.Documents > 0 && c.Documents > m.Documents || c.TooLarge(m)
}

// TooLarge reports whether a provider refuses some of them for their size, which its bound for many media
// limits.
func (c MediaCount) TooLarge(m traits.Media) bool {
	return m.Many > 0 && c.Images > m.Many && c.Large > 0
}

// Kept returns the units of a cut text that may stay, and those of the notice about the cut.
func (e *Entry) Kept() (text, notice int64) {
	switch {
	case e.Kind == KindRestored:
		notice = RestoreNotice + int64(e.PathUnits)
		if int64(e.Ceiling) < int64(e.Text)+notice {
			notice += trimNotice
		}
	case e.Op == OpTrim && e.Ceiling >= NoticeFrom:
		notice = trimNotice
	case e.Op == OpTrim: // without room for more than the dots behind it
	default:
		notice = LimitNotice
	}
	return min(max(int64(e.Ceiling)-notice, 0), e.content()), notice
}

// content is the number of UTF-16 units that a cut shortens: of a call its arguments, of any other entry its
// text.
func (e *Entry) content() int64 {
	if e.Kind == KindCall {
		return int64(e.JSON)
	}
	return int64(e.Text)
}

// TextBytes is the size of a result's text in UTF-8, at least a byte for each unit.
func (e *Entry) TextBytes() int64 { return int64(max(e.Bytes, e.Text)) }

// Size is the number of UTF-16 units of text, or of a call's arguments, in view.
func (e *Entry) Size() int64 {
	if e.Op.Trims() {
		return int64(e.Ceiling)
	}
	return e.content()
}

// TrimTo is the entry under a trim to a ceiling.
func (e *Entry) TrimTo(ceiling int64) Entry {
	x := *e
	x.Set(&events.Edit{Op: events.OpTrim, Units: ceiling})
	return x
}

// OwnBytes is the size of an entry's own content. A placeholder counts none.
func (e *Entry) OwnBytes() int64 {
	if e.Op != OpNone || e.Flags.Has(FlagEmpty) {
		return 0
	}
	return int64(e.Bytes)
}

// BytesOf sums up the own bytes of entries.
func BytesOf(view []Entry) int64 {
	var n int64
	for i := range view {
		n += view[i].OwnBytes()
	}
	return n
}
