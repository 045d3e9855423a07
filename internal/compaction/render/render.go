package render

import (
	"cmp"
	"fmt"
	"slices"
	"sync" //nolint:depguard // a pool of memory alone; no result depends on it

	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/stage"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/events/traits"
)

// View is an effective history in entries, ready to be rendered.
type View struct {
	Format          events.Format
	PlaceholderRole events.Role    // of summaries and truncation notices, see [measure.Custom]; "" is the user
	SystemInside    bool           // the model takes the system's messages within a conversation; see [SystemInside]
	Demands         traits.Demands // of the provider
	Marks           int            // for the cache, of system prompt and tools
	Renamed         stage.Renamed  // calls and results with another id
	Uncited         stage.Uncited  // words without the citations of what is gone
	ByHash          bool           // the model looks originals up by their hash, not by their place
	Thinking        Thinking
	Entries         []measure.Entry // not to be changed
}

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

// changes reports whether an entry is shown in another form than it came in.
func (v *View) changes(i int) bool {
	_, renamed := v.Renamed[i]
	return v.Entries[i].Op != measure.OpNone || renamed || v.Uncited[i]
}

// NeedsText reports whether a rendering of entry i needs more than its message as it came.
func (v *View) NeedsText(i int) bool { return v.Entries[i].NeedsText() || v.changes(i) }

// Weight is how many bytes of memory the entries of the view take.
func (v *View) Weight() int { return len(v.Entries) * measure.HeldEntry }

// TextBytes is about how many bytes the turns have whose text Render needs.
func (v *View) TextBytes() (n int) {
	for i := range v.Entries {
		n += int(v.Entries[i].Bytes) + entryEnvelope
	}
	return n
}

// OwnBytes is about how many bytes of contents the rendered view has: whole ones, and those that are cut.
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

// entryEnvelope is what an entry takes of its turn beside text, about: names of fields, ids, and
// a share of the turn's own fields.
const entryEnvelope = 128

// Texts returns the messages of the turn at a sequence of the log. They are not changed,
// and may be unread: a message without role and parts is read from its Raw when an edit
// needs it.
type Texts func(measure.Seq) ([]events.Message, error)

// Render writes the view in the session's own dialect, valid for its provider.
// Messages that no edit touches are the Raw of their texts, not a copy. changes are what
// the provider's rules of form changed beside the edits of the view, see [events.Op.Writes].
func Render(v *View, texts Texts) (messages []events.Raw, changes []events.Edit, err error) {
	err = v.render(texts, func(r *renderer) {
		messages = make([]events.Raw, len(r.out))
		for i := range r.out {
			messages[i] = r.out[i].raw
		}
		changes = r.changes
	})
	return messages, changes, err
}

// Sourced is a message of a rendered history, and the messages of the log that it was made
// of: those from First to Last, none where First has no turn. Untouched: it is that one
// message as it came.
type Sourced struct {
	Raw         events.Raw
	First, Last events.Position
	Untouched   bool
}

// WithSources is [Render] that states what each message was made of.
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

// render gives take what was rendered.
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

// renderers holds finished renderers for use again: a large history takes large lists.
var renderers = sync.Pool{New: func() any { return new(renderer) }}

// renderer assembles a history exchange by exchange: the assistant's messages,
// then the results of their calls, placeholders last, since without ids the
// order decides whose they are, then everything else up to the next assistant.
type renderer struct {
	view    *View
	texts   Texts
	dialect *dialect.Dialect

	seq       measure.Seq // of the turn at hand, 0 for none
	turn      []events.Message
	draft     events.Message // the message at hand, while it is edited
	parts     []events.Part  // that are left of it
	timestamp events.Raw     // of it, once stamped
	stamped   bool
	last      struct { // the message that [renderer.part] read last
		place
		parts []events.Part
	}
	pairs  *stage.Pairing // nil until a placeholder needs it
	moved  map[place]bool // messages that have lost parts to other places
	room   events.Raw     // for what is written next
	out    []message
	open   int            // in out, where the open exchange begins
	done   int            // in out, up to where neighbours were joined: placeholders may come before open
	ranks  []rank         // of its messages
	has    [rest + 1]bool // it has messages of these ranks
	called bool           // it has a call
	before []message      // placeholder calls with their results, to come before it
	union  union          // the message at the end of what is done that others become a part of

	changes []events.Edit
}

// message is one of the history that is rendered.
type message struct {
	raw            events.Raw
	role           measure.Role
	calls, results bool // it has any
	paused         int  // calls of the provider's own tools whose results are not in it
	resumed        int  // results of the provider's own tools whose calls are in a message before

	first, last events.Position // the messages of the log that it was made of, without a turn for none
	untouched   bool            // it is that one message as it came
}

// from notes the one message of the log that a message was made of.
func (m *message) from(e *measure.Entry) {
	m.first = measure.MessageOf(e.Position())
	m.last = m.first
}

// place is that of a message in the log.
type place struct {
	seq   measure.Seq
	index uint32
}

func placeOf(e *measure.Entry) place { return place{e.Seq, e.Index} }

// reset drops the history, and what its texts refer to.
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

// untouched returns the message as it came, if no edit and no rule of the dialect
// changes it. Entries alone decide that.
func (r *renderer) untouched(source *events.Message, from, to int) (out message, ok bool) {
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

// holds notes that the message has an entry.
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

// lost reports whether parts of a message are at another place, behind their calls.
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
func (r *renderer) source(e *measure.Entry) (*events.Message, error) {
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

func unread(m *events.Message) bool { return m.Role == "" }

// read returns a message with its parts.
func (r *renderer) read(m *events.Message) (events.Message, error) {
	if !unread(m) {
		return *m, nil
	}
	return r.readRaw(m.Raw)
}

func (r *renderer) readRaw(raw events.Raw) (events.Message, error) {
	list, err := r.view.Format.ReadAll([]events.Raw{raw})
	if err != nil {
		return events.Message{}, fmt.Errorf("render: %w", err)
	}
	return list[0], nil
}

// part returns the first part of an entry.
func (r *renderer) part(e *measure.Entry) (p events.Part, err error) {
	source, err := r.source(e)
	if err != nil {
		return p, err
	}
	if at := placeOf(e); r.last.place != at || r.last.parts == nil {
		m, err := r.read(source)
		if err != nil {
			return p, err
		}
		r.last.place, r.last.parts = at, m.Parts
	}
	if err := holdsParts(r.last.parts, e); err != nil {
		return p, err
	}
	return r.last.parts[e.Part], nil
}

func holdsParts(parts []events.Part, e *measure.Entry) error {
	if int(e.Part+e.Parts) > len(parts) {
		return fmt.Errorf("render turn at %d: it has no part %d of message %d", e.Seq, e.Part, e.Index)
	}
	return nil
}

// made writes a message that compactd makes.
func (r *renderer) made(role measure.Role, m events.Message) (message, error) {
	raw, err := r.view.Format.Write(m)
	if err != nil {
		return message{}, fmt.Errorf("render: %w", err)
	}
	out := message{raw: raw, role: role}
	out.holdsParts(m.Parts)
	return out, nil
}

// holdsParts notes that the message has parts.
func (m *message) holdsParts(parts []events.Part) {
	for i := range parts {
		m.calls = m.calls || parts[i].Kind == events.PartCall
		m.results = m.results || parts[i].Kind == events.PartResult
		m.awaits(parts[i].Hosted.Kind)
	}
}
