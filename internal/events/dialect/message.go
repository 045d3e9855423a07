package dialect

import (
	"cmp"
	"crypto/sha256"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/media"
	"compactd/internal/events/weigh"
)

// Role is the author of a message, in the word of the provider where there is one.
type Role string

// Roles of all dialects.
const (
	RoleSystem    Role = "system" // also OpenAI's developer
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // a message that holds tool results and nothing else (openai, neurolink)
)

// PartKind is the content of a part.
type PartKind uint8

// The kinds of parts.
const (
	PartText     PartKind = iota // text, or anything that counts as text
	PartCall                     // a tool call
	PartResult                   // a tool's result
	PartThinking                 // a model's reasoning with its signature
	PartImage                    // an image or document, by value or reference
	PartOther                    // a block of a type that this version does not define
)

// Part is the smallest piece of a message that an edit may change.
type Part struct {
	Kind      PartKind
	Failed    bool        // a result that the tool marked as an error
	Edited    bool        // Text, of a call Args, replaces the content of Raw
	Text      string      // text, thinking, or the text of a result; empty for a call
	Args      codec.Raw   // arguments of a call: a JSON value
	CallID    string      // of a call or result; empty where the dialect gave none
	Tool      string      // name of the tool, on results too where the message names it
	Images    int         // images and documents inside a result
	Media     media.Shape // of an image or document, or of those inside a result together
	Papers    int         // how many of them are documents: 1 for a document
	NoID      bool        // a call or result without the id that its dialect requires
	Locked    bool        // its content must not change: a signature covers it, or it has no form for a text
	Aside     bool        // Raw is a member of its message beside the content, as a refusal: it is written with the message, and so is what its dialect does not define; thinking without Raw is reasoning_content
	CacheMark codec.Raw   // block behind this one that marks what to cache, which is no content: see bedrock.go
	Other     codec.Raw   // of a call or result made by compactd: the block of its counterpart
	Hosted    Hosted      // what it has to do with a tool that the provider carries out: see hosted.go

	// In a scanned message (see events.Decoder) no text is made: Quoted, the original JSON string, replaces Text,
	// with the size of its text, and Call, the key of the id, replaces CallID.
	Quoted codec.Raw
	Size   weigh.Size
	Call   Key

	// Raw is the original block, nil if it had no block of its own (a content that is a plain string) or
	// compactd made the part.
	Raw codec.Raw

	// Source is the JSON string from which Text was read; zero if there is none.
	Source Span
}

// Span is a range of bytes of an original message.
type Span struct{ from, to int }

// Message is one message of any dialect.
type Message struct {
	Role  Role
	Parts []Part
	Raw   codec.Raw // as it came; nil when compactd made the message

	// ID is for a message made by compactd, in a dialect whose messages have one (neurolink); "" leaves it
	// out. Other messages have it in Raw.
	ID string

	// Timestamp is for a message made by compactd, in a dialect whose messages have one: that of the message
	// it completes; nil leaves it out.
	Timestamp codec.Raw

	// Condensation and Truncation are for a message that compactd makes in the place
	// of others, in a dialect with tags (neurolink): its condenseId or truncationId.
	Condensation, Truncation string

	// As is its written role in that dialect, "" for Role: there a system message may be anywhere.
	As Role

	// Odd: it has a member for contents of other dialects, and none for its own. See [Format.Complete].
	Odd bool

	// Pinned: its sender wants it to stay while it fits.
	Pinned bool

	// Hidden: the sender's own history hides the message behind another one, so a model does
	// not get it. It has no parts.
	Hidden bool

	// Extra is the size of undefined members that no part has: they are sent with the message.
	Extra weigh.Size

	// Edited: Parts differ from those of Raw. Write builds the message again, with the other members of Raw
	// unchanged.
	Edited bool
}

// SetText replaces the text of part i: the text of a text part, the content of
// a result. Everything else of the block stays.
func (m *Message) SetText(i int, text string) {
	m.Parts[i].SetText(text)
	m.Edited = true
}

// SetText is that of [Message]; the caller sets the message's Edited.
func (p *Part) SetText(text string) {
	p.Text, p.Images, p.Papers, p.Media, p.Edited = text, 0, 0, media.Shape{}, true
}

// SetArgs replaces the arguments of a call by another JSON value of their kind. Everything
// else of the block stays.
func (p *Part) SetArgs(args codec.Raw) { p.Args, p.Edited = args, true }

// Content returns the text of a part, whether it was read or scanned.
func (p *Part) Content() string {
	if p.Quoted == nil {
		return p.Text
	}
	s, _ := codec.Text(p.Quoted)
	return s
}

// ContentKey is the key of the content, which it does not copy.
func (p *Part) ContentKey() Key {
	if p.Quoted == nil {
		return KeyOf(p.Text)
	}
	if len(p.Quoted) <= len(`""`) {
		return 0
	}
	h := sha256.New()
	for piece := range codec.Pieces(p.Quoted) {
		h.Write(piece)
	}
	return keyOf([sha256.Size]byte(h.Sum(nil)))
}

// CallKey is the key of the call id, whether it was read or scanned.
func (p *Part) CallKey() Key { return cmp.Or(p.Call, CallKeyOf(p.CallID)) }

// Blank reports whether a text is all white space.
func (p *Part) Blank() bool {
	if p.Quoted == nil {
		return strings.TrimSpace(p.Text) == ""
	}
	return codec.IsBlank(p.Quoted)
}

// splice writes the original message with the texts of edited parts in place of their sources; ok is false if
// the parts differ, or a source is unknown.
func (m *Message) splice(out codec.Raw) (_ codec.Raw, ok bool) {
	begin, at := len(out), 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if !p.Edited {
			continue
		}
		if p.Kind == PartCall || p.Source.from <= at {
			return out[:begin], false
		}
		out = codec.AppendQuote(append(out, m.Raw[at:p.Source.from]...), p.Text)
		at = p.Source.to
	}
	return append(out, m.Raw[at:]...), true
}

// TimestampOf returns the timestamp of a message that came, nil without.
func (m *Message) TimestampOf() codec.Raw { return codec.Get(m.Raw, "timestamp") }

// Clone returns a copy whose parts can be edited without changing m.
func (m Message) Clone() Message {
	m.Parts = append([]Part(nil), m.Parts...)
	return m
}

// without returns members less those of a name.
func without(ms []codec.Member, name string) []codec.Member {
	out := make([]codec.Member, 0, len(ms))
	for _, m := range ms {
		if m.Name != name {
			out = append(out, m)
		}
	}
	return out
}

func isTrue(raw codec.Raw) bool { return raw.Kind() == 't' }

// StatesError reports whether the text of a result begins like a failure: not every dialect marks errors, and
// not every tool.
func (p *Part) StatesError() bool {
	return p.begins("Error: ") || p.begins("Traceback (most recent call last)")
}

// begins reports whether a text begins with another one, whether it was read or scanned.
func (p *Part) begins(with string) bool {
	if p.Quoted == nil {
		return strings.HasPrefix(p.Text, with)
	}
	for piece := range codec.Pieces(p.Quoted) {
		n := min(len(piece), len(with))
		if string(piece[:n]) != with[:n] {
			return false
		}
		if with = with[n:]; with == "" {
			return true
		}
	}
	return false
}
