package render

import (
	"cmp"
	"fmt"
	"slices"
	"sync" //nolint:depguard // a pool of memory alone; no result depends on it

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/events/traits"
)

// View is an effective history in entries, ready to be rendered.
type View struct {
	Format          events.Format
	PlaceholderRole dialect.Role   // of summaries and truncation notices, see [measure.Custom]; "" is the user
	SystemInside    bool           // the model takes the system's messages within a conversation; see [SystemInside]
	Demands         traits.Demands // of the provider
	Marks           int            // cache marks in system prompt and tools
	Renamed         stage.Renamed  // calls and results with another id
	Uncited         stage.Uncited  // words that lose citations of missing results
	Originals       Originals      // how notices name the whole of a cut or cleared content
	Thinking        Thinking
	Entries         []measure.Entry // not to be changed
}

// Originals is how notices name the whole of a cut or cleared content.
type Originals int

const (
	// ByPlace names the turn and the message.
	ByPlace Originals = iota
	// ByHash names the hash; see [events.ContentHash].
	ByHash
	// Unnamed is for a history that is not in the log.
	Unnamed
)

// Seqs lists the turns whose text Render needs, in order, each once.
func (v *View) Seqs() []measure.Seq {
	var out []measure.Seq
	for i := range v.Entries {
		if v.Entries[i].Kind != measure.KindTruncation {
			out = append(out, v.Entries[i].Seq)
		}
		if s := v.Entries[i].CallSeq(); v.Entries[i].Kind == measure.KindRestored && s != 0 {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// changes reports whether an entry is rendered in a changed form.
func (v *View) changes(i int) bool {
	_, renamed := v.Renamed[i]
	return v.Entries[i].Op != measure.OpNone || renamed || v.Uncited[i]
}

// NeedsText reports whether a rendering of entry i needs more than its original message.
func (v *View) NeedsText(i int) bool { return v.Entries[i].NeedsText() || v.changes(i) }

// Weight is the memory of the view's entries in bytes.
func (v *View) Weight() int { return len(v.Entries) * measure.HeldEntry }

// TextBytes is the approximate size of the turns whose text Render needs.
func (v *View) TextBytes() (n int) {
	for i := range v.Entries {
		n += int(v.Entries[i].Bytes) + entryEnvelope
	}
	return n
}

// OwnBytes is the approximate size of contents in the rendered view, whole and cut.
func (v *View) OwnBytes() (n int64) {
	for i := range v.Entries {
		if e := &v.Entries[i]; e.Op.Trims() {
			n += e.Size()
		} else {
			n += e.OwnBytes()
		}
	}
	return n
}

// entryEnvelope is the approximate size of an entry in its turn beside its text: names of fields, ids, and a
// share of the turn's own fields.
const entryEnvelope = 128

// Texts returns the messages of the turn at a sequence of the log. The renderer does not change them. They
// may be unread: a message without role and parts is read from its Raw when an edit needs it.
type Texts func(measure.Seq) ([]dialect.Message, error)

// Render writes the view in the session's own dialect, valid for its provider. Messages that no edit changes
// are the Raw of their texts, not a copy. changes are the changes by the provider's rules of form beside the
// edits of the view, see [events.Op.Writes].
func Render(v *View, texts Texts) (messages []codec.Raw, changes []events.Edit, err error) {
	err = v.render(texts, func(r *renderer) {
		messages = make([]codec.Raw, len(r.out))
		for i := range r.out {
			messages[i] = r.out[i].raw
		}
		changes = r.changes
	})
	return messages, changes, err
}

// Sourced is a message of a rendered history with its source, the messages of the log from First to Last;
// First has no turn if there is none. Untouched: it is that one message unchanged.
type Sourced struct {
	Raw         codec.Raw
	First, Last events.Position
	Untouched   bool
}

// WithSources is [Render] with the source of each message.
func WithSources(v *View, texts Texts) (out []Sourced, err error) {
	err = v.render(texts, func(r *renderer) {
		out = make([]Sourced, len(r.out))
		for i := range r.out {
			m := &r.out[i]
			out[i] = Sourced{m.raw, m.first, m.last, m.untouched}
		}
	})
	return out, err
}

// render calls take with the rendered history.
func (v *View) render(texts Texts, take func(*renderer)) error {
	r := renderers.Get().(*renderer)
	r.view, r.texts, r.dialect = v, texts, v.Format.Dialect()
	err := r.render()
	if err == nil {
		take(r)
	}
	r.reset()
	renderers.Put(r)
	return err
}

// renderers are for reuse: a large history needs large lists.
var renderers = sync.Pool{New: func() any { return new(renderer) }}

// renderer assembles a history exchange by exchange: the assistant's messages, the results of their calls,
// placeholders, then everything else up to the next assistant. Placeholders are the last results, since
// without ids the order decides to which call they belong.
type renderer struct {
	view    *View
	texts   Texts
	dialect *dialect.Dialect

	seq       measure.Seq // of the turn at hand, 0 for none
	turn      []dialect.Message
	draft     dialect.Message // the message at hand, while it is edited
	parts     []dialect.Part  // remaining parts
	timestamp codec.Raw       // of the message, once known
	stamped   bool
	known     map[place][]dialect.Part       // the messages that [renderer.part] has read
	calls     map[dialect.Key]*measure.Entry // the first call of each id; nil until a cut result needs it
	pairs     *stage.Pairing                 // nil until a placeholder needs it
	moved     map[place]bool                 // messages whose parts moved to other places

	room   codec.Raw // for the next written message
	out    []message
	open   int            // in out, beginning of the open exchange
	done   int            // in out, end of the joined neighbours: placeholders may be put before open
	ranks  []rank         // of its messages
	has    [rest + 1]bool // it has messages of these ranks
	called bool           // it has a call
	before []message      // placeholder calls with their results, to put before it
	union  union          // the joined message at the end of the done part

	changes []events.Edit
}

// message is a rendered message.
type message struct {
	raw            codec.Raw
	role           measure.Role
	calls, results bool // it has any
	paused         int  // calls of the provider's own tools without a result in it
	resumed        int  // results of the provider's own tools whose calls are in an earlier message

	first, last events.Position // its messages of the log, without a turn for none
	untouched   bool            // it is that one message unchanged
}

// from sets the one message of the log that is the source.
func (m *message) from(e *measure.Entry) {
	m.first = measure.MessageOf(e.Position())
	m.last = m.first
}

// place is the place of a message in the log.
type place struct {
	seq   measure.Seq
	index uint32
}

func placeOf(e *measure.Entry) place { return place{e.Seq, e.Index} }

// reset drops the history and the texts that it refers to.
func (r *renderer) reset() {
	clear(r.parts[:cap(r.parts)])
	clear(r.out[:cap(r.out)])
	clear(r.before[:cap(r.before)])
	*r = renderer{parts: r.parts[:0], out: r.out[:0], ranks: r.ranks[:0], before: r.before[:0]}
}

func (r *renderer) render() error {
	r.noteUnbound()
	for from := 0; from < len(r.view.Entries); {
		to := from + 1
		for to < len(r.view.Entries) && r.view.Entries[from].SameMessage(&r.view.Entries[to]) {
			to++
		}
		if err := r.message(from, to); err != nil {
			return err
		}
		from = to
	}
	r.placeBefore()
	if r.awaits() {
		if err := r.writeUnion(); err != nil {
			return err
		}
		r.instructAhead()
	}
	if err := cmp.Or(r.flush(), r.writeUnion()); err != nil {
		return err
	}
	return r.finish()
}

// message adds the message of entries from ≤ i < to.
func (r *renderer) message(from, to int) error {
	first := &r.view.Entries[from]
	switch first.Kind {
	case measure.KindSummary:
		return r.summary(first)
	case measure.KindTruncation:
		return r.placeholder(r.truncationMessage(first))
	case measure.KindRestored:
		return r.restored(first)
	}
	source, err := r.source(first)
	if err != nil {
		return err
	}
	if out, ok := r.untouched(source, from, to); ok {
		if kept, err := r.withoutReasoning(&out); err != nil || !kept {
			return err
		}
		return r.add(out, nil, nil)
	}
	return r.edited(source, from, to)
}

// untouched returns the original message, if no edit and no rule of the dialect changes it. It looks at
// entries only.
func (r *renderer) untouched(source *dialect.Message, from, to int) (out message, ok bool) {
	strict := r.dialect.Strict // blank texts are refused, and results come first
	var parts uint32
	content, other := false, false
	for i := from; i < to; i++ {
		e := &r.view.Entries[i]
		empty, result := e.Flags.Has(measure.FlagEmpty), e.Kind == measure.KindResult
		switch {
		case r.view.changes(i), e.Part != parts, r.view.Thinking.drops(e), e.Flags.Has(measure.FlagAnswer | measure.FlagCall), empty && (strict || e.Kind != measure.KindWords):
			return out, false
		case strict && (result && other || !result && e.Parts > 1): // one of several may be blank
			return out, false
		}
		parts += e.Parts
		content, other = content || !empty, other || !result
		out.holds(e)
	}
	if r.dialect.Apart && out.results && other {
		return out, false
	}
	if unread(source) && r.lost(&r.view.Entries[from]) || !unread(source) && int(parts) != len(source.Parts) {
		return out, false
	}
	out.raw, out.untouched = source.Raw, true
	out.from(&r.view.Entries[from])
	return out, content
}

// holds adds an entry to the facts of the message.
func (m *message) holds(e *measure.Entry) {
	m.role = e.Role
	m.calls = m.calls || e.Kind == measure.KindCall
	m.results = m.results || e.Kind == measure.KindResult
	m.awaits(e.HostedHalf())
}

// awaits counts a half of a pair of the provider's own tools.
func (m *message) awaits(half dialect.HostedKind) {
	switch {
	case half == dialect.HostedCall:
		m.paused++
	case half == dialect.HostedResult && m.paused > 0:
		m.paused--
	case half == dialect.HostedResult:
		m.resumed++
	}
}

// lost reports whether parts of a message moved to another place, behind their calls.
func (r *renderer) lost(e *measure.Entry) bool {
	if r.moved == nil {
		r.moved = map[place]bool{}
		for i := range r.view.Entries {
			x := &r.view.Entries[i]
			if x.Part > 0 && x.Kind < measure.KindTruncation && (i == 0 || !r.view.Entries[i-1].SameMessage(x)) {
				r.moved[placeOf(x)] = true
			}
		}
	}
	return r.moved[placeOf(e)]
}

// source returns the message an entry was measured from.
func (r *renderer) source(e *measure.Entry) (*dialect.Message, error) {
	if r.turn == nil || r.seq != e.Seq {
		turn, err := r.texts(e.Seq)
		if err != nil {
			return nil, fmt.Errorf("render turn at %d: %w", e.Seq, err)
		}
		r.seq, r.turn = e.Seq, turn
	}
	if int(e.Index) >= len(r.turn) {
		return nil, fmt.Errorf("render turn at %d: it has no message %d", e.Seq, e.Index)
	}
	return &r.turn[e.Index], nil
}

func unread(m *dialect.Message) bool { return m.Role == "" }

// read returns a message with its parts.
func (r *renderer) read(m *dialect.Message) (dialect.Message, error) {
	if !unread(m) {
		return *m, nil
	}
	return r.readRaw(m.Raw)
}

func (r *renderer) readRaw(raw codec.Raw) (dialect.Message, error) {
	list, err := r.view.Format.ReadAll([]codec.Raw{raw})
	if err != nil {
		return dialect.Message{}, fmt.Errorf("render: %w", err)
	}
	return list[0], nil
}

// part returns the first part of an entry. It reads each message once: many results may have their calls in
// one message, or alternate between several.
func (r *renderer) part(e *measure.Entry) (p dialect.Part, err error) {
	parts, ok := r.known[placeOf(e)]
	if !ok {
		source, err := r.source(e)
		if err != nil {
			return p, err
		}
		m, err := r.read(source)
		if err != nil {
			return p, err
		}
		if parts = m.Parts; r.known == nil {
			r.known = map[place][]dialect.Part{}
		}
		r.known[placeOf(e)] = parts
	}
	if err := holdsParts(parts, e); err != nil {
		return p, err
	}
	return parts[e.Part], nil
}

func holdsParts(parts []dialect.Part, e *measure.Entry) error {
	if int(e.Part+e.Parts) > len(parts) {
		return fmt.Errorf("render turn at %d: it has no part %d of message %d", e.Seq, e.Part, e.Index)
	}
	return nil
}

// made writes a message made by compactd.
func (r *renderer) made(role measure.Role, m dialect.Message) (message, error) {
	raw, err := r.view.Format.Write(m)
	if err != nil {
		return message{}, fmt.Errorf("render: %w", err)
	}
	out := message{raw: raw, role: role}
	out.holdsParts(m.Parts)
	return out, nil
}

// holdsParts adds parts to the facts of the message.
func (m *message) holdsParts(parts []dialect.Part) {
	for i := range parts {
		m.calls = m.calls || parts[i].Kind == dialect.PartCall
		m.results = m.results || parts[i].Kind == dialect.PartResult
		m.awaits(parts[i].Hosted.Kind)
	}
}
