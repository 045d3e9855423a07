package payload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/events/dialect"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// Renderer reads events from the log by sequence, behind a cache of recent ones, and renders
// views. All partitions share it.
type Renderer struct {
	// Texts reads the texts for commits, in the order of the log.
	Texts *stream.Texts
	// Read reads the texts for a waiting request.
	Read  func(ctx context.Context, seqs []uint64) ([]stream.LogMessage, error)
	cache *otter.Cache[measure.Seq, entry]
	used  atomic.Bool // since the last call of InvalidateUnused
}

// entry is one event of the log that holds text.
type entry struct {
	address events.Address
	kind    events.Kind
	data    []byte
}

// NewRenderer returns a renderer that reads texts over nc and caches up to bytes of them.
func NewRenderer(nc *nats.Conn, bytes uint64) *Renderer {
	read := func(ctx context.Context, seqs []uint64) ([]stream.LogMessage, error) {
		return stream.GetLog(ctx, nc, seqs)
	}
	return &Renderer{Texts: stream.NewTexts(nc), Read: read, cache: otter.Must(&otter.Options[measure.Seq, entry]{
		MaximumWeight: bytes,
		Weigher:       func(_ measure.Seq, t entry) uint32 { return uint32(len(t.data)) + heldText },
	})}
}

// Put caches an event.
func (t *Renderer) Put(e decide.Event) {
	t.used.Store(true)
	t.cache.Set(e.Seq, entry{e.Address, e.Kind, e.Data})
}

// Erase drops the texts of a session.
func (t *Renderer) Erase(a events.Address) {
	for seq, held := range t.cache.All() {
		if held.address == a {
			t.cache.Invalidate(seq)
		}
	}
}

// EraseAll drops all texts.
func (t *Renderer) EraseAll() { t.cache.InvalidateAll() }

// InvalidateUnused drops all texts if none was used since its last call.
func (t *Renderer) InvalidateUnused() {
	if !t.used.Swap(false) {
		t.cache.InvalidateAll()
	}
}

// get returns events by sequence, from ahead, from the cache, or from the log. They must belong to
// the session a: a log that was truncated by a power loss assigns sequences twice.
func (t *Renderer) get(ctx context.Context, ahead *Ahead, a events.Address, seqs []measure.Seq) (map[measure.Seq]entry, error) {
	t.used.Store(true)
	have := make(map[measure.Seq]entry, len(seqs))
	var missing []uint64
	for _, seq := range seqs {
		if hit, ok := t.at(ahead, a, seq); ok {
			have[seq] = hit
			continue
		}
		missing = append(missing, uint64(seq))
	}
	read := t.Texts.Get
	if ahead == nil { // a request waits
		read = t.Read
	}
	if len(missing) == 0 {
		return have, nil
	}
	var stored []stream.LogMessage
	err := limit.Of(ctx).Idle(ctx, func() (err error) {
		stored, err = read(ctx, missing)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, b := range stored {
		if have[measure.Seq(b.Seq)], err = t.keep(a, b); err != nil {
			return nil, err
		}
	}
	return have, nil
}

// at returns an event of the session a from ahead or the cache.
func (t *Renderer) at(ahead *Ahead, a events.Address, seq measure.Seq) (hit entry, ok bool) {
	if hit, ok = ahead.at(seq); !ok {
		hit, ok = t.cache.GetIfPresent(seq)
	}
	return hit, ok && hit.address == a
}

// keep caches an event that was read, and checks that it belongs to the session a.
func (t *Renderer) keep(a events.Address, m stream.LogMessage) (entry, error) {
	at, err := events.ParseLog(m.Subject)
	if err != nil || at.Address != a {
		return entry{}, fmt.Errorf("sequence %d belongs to another session", m.Seq)
	}
	t.Put(decide.Event{Location: at, Seq: measure.Seq(m.Seq), Data: m.Data})
	return entry{at.Address, at.Kind, m.Data}, nil
}

// Render writes a view of the session a, and validates it: see [InvalidError].
func (t *Renderer) Render(ctx context.Context, a events.Address, v *render.View) ([]codec.Raw, error) {
	messages, _, err := t.render(ctx, nil, a, v, limit.Of(ctx).Yield)
	return messages, err
}

func (t *Renderer) render(ctx context.Context, ahead *Ahead, a events.Address, v *render.View, yield func(context.Context) error) (history []codec.Raw, changes []events.Edit, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("render: panic: %v", r)
		}
	}()
	have, err := t.get(ctx, ahead, a, v.Seqs())
	if err != nil {
		return nil, nil, fmt.Errorf("render: %w", err)
	}
	messages := make(map[measure.Seq][]dialect.Message, len(have))
	for seq, e := range have {
		if err := yield(ctx); err != nil {
			return nil, nil, err
		}
		if messages[seq], err = Texts(e.kind, e.data); err != nil {
			return nil, nil, fmt.Errorf("render: sequence %d: %w", seq, err)
		}
	}
	history, changes, err = render.Render(v, func(seq measure.Seq) ([]dialect.Message, error) { return messages[seq], yield(ctx) })
	if err == nil {
		sendable(v.Format, history)
		err = check(v, history, messages)
	}
	if err != nil {
		return nil, nil, err
	}
	return history, changes, nil
}

// Turn returns the raw messages of a turn of a session.
func (t *Renderer) Turn(ctx context.Context, a events.Address, seq measure.Seq) ([]dialect.Message, error) {
	have, err := t.get(ctx, nil, a, []measure.Seq{seq})
	if err != nil {
		return nil, fmt.Errorf("read turn: %w", err)
	}
	return Texts(have[seq].kind, have[seq].data)
}

// sendable replaces media of which only the hash was kept by placeholders.
func sendable(f events.Format, history []codec.Raw) {
	for i := range history {
		history[i] = f.Sendable(history[i])
	}
}

// Sourced is Render that also returns the source of each message. Its messages keep their recorded
// media: see [events.Format.Sendable]. own returns the caller's messages of a turn, or nil if the
// log must be read. A message of own without Raw must be shown unchanged; the history is then not
// validated.
func (t *Renderer) Sourced(ctx context.Context, a events.Address, v *render.View, own func(measure.Seq) []dialect.Message) (_ []render.Sourced, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("render: panic: %v", r)
		}
	}()
	messages := map[measure.Seq][]dialect.Message{}
	var missing []measure.Seq
	for _, seq := range v.Seqs() {
		if messages[seq] = own(seq); messages[seq] == nil {
			missing = append(missing, seq)
		}
	}
	have, err := t.get(ctx, nil, a, missing)
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	for seq, e := range have {
		if messages[seq], err = Texts(e.kind, e.data); err != nil {
			return nil, fmt.Errorf("render: sequence %d: %w", seq, err)
		}
	}
	out, err := render.WithSources(v, func(seq measure.Seq) ([]dialect.Message, error) { return messages[seq], nil })
	if err != nil {
		return nil, err
	}
	changed, partly := false, false
	history := make([]codec.Raw, len(out))
	for i := range out {
		history[i] = out[i].Raw
		changed = changed || !out[i].Untouched
		partly = partly || out[i].Raw == nil
	}
	if changed && !partly { // an unchanged history is the caller's own
		sendable(v.Format, history)
		err = check(v, history, messages)
	}
	return out, err
}

// Texts returns the messages of a turn or a summary in the log. The messages of a turn are raw.
func Texts(k events.Kind, data []byte) ([]dialect.Message, error) {
	if k == events.KindSummary {
		s, err := events.DecodeSummary(data)
		if err != nil {
			return nil, err
		}
		return s.Messages(), nil
	}
	in, err := events.DecodeTurn(data)
	if err != nil {
		return nil, err
	}
	out := make([]dialect.Message, len(in.Messages))
	for i := range out {
		out[i].Raw = in.Messages[i]
	}
	return out, nil
}

// ReadMessages returns the messages of a turn.
func ReadMessages(f events.Format, data []byte) ([]dialect.Message, error) {
	in, err := events.DecodeTurn(data)
	if err != nil {
		return nil, err
	}
	return f.ReadAll(in.Messages)
}

// headerBytes is reserved for the headers of an outcome, including the marker.
const headerBytes = 8 << 10

// Outcome writes the payload of an outcome. It omits the messages if the payload would exceed limit bytes or
// be invalid, or if their text cannot be read. omitted is the reason, or "". An error beside a payload
// has the cause; the payload is valid. ahead has texts that were read before; it may be nil.
func (t *Renderer) Outcome(ctx context.Context, ahead *Ahead, a events.Address, o compaction.Outcome, limit int) (data []byte, omitted string, err error) {
	c, ok := o.Body.(*events.Compacted)
	if !ok || o.View == nil {
		data, err = codec.Marshal(o.Body)
		return data, "", err
	}
	if TooLong(o.View) {
		data, err = WithoutMessages(c)
		return data, observe.OmittedSize, err
	}
	full := *c
	messages, changes, cause := t.render(ctx, ahead, a, o.View, func(context.Context) error { return nil }) // no yield: other sessions' events wait for it
	if cause == nil {
		full.Edits = append(slices.Clip(c.Edits), changes...)
		full.Summary, cause = t.summary(ctx, ahead, a, c)
	}
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if _, invalid := errors.AsType[*InvalidError](cause); invalid {
		data, err = WithoutMessages(c, events.NoteOf(events.CodeInvalidHistory))
		return data, observe.OmittedInvalid, cmp.Or(err, cause)
	}
	omitted = observe.OmittedText
	if full.Messages = messages; cause == nil {
		if omitted = observe.OmittedSize; codec.Size(messages)+len(messages)+2 <= min(events.MaxOutputBytes, limit) {
			if data, err = codec.Marshal(full); err != nil || len(data)+headerBytes <= limit {
				return data, "", err
			}
		}
	}
	if data, err = WithoutMessages(c); err != nil {
		return nil, "", err
	}
	return data, omitted, cause
}

// Limits on a view that is rendered for a commit, which other events wait for: its entries, which the
// policy keeps far lower unless calls are open, and the bytes of the turns that are read for it.
const (
	maxEntries   = 1 << 16
	maxTextBytes = 8 * events.MaxOutputBytes
)

// TooLong reports whether a view is too long to be rendered for a commit: an agent reads it in pages.
func TooLong(v *render.View) bool {
	return len(v.Entries) > maxEntries || v.OwnBytes() > events.MaxOutputBytes || v.TextBytes() > maxTextBytes
}

// WithoutMessages writes a compaction without its messages. notes give the reason: the tenant is over
// a limit, or the history is invalid. With a note it also omits the repairs: they may be many,
// and an agent needs them only with the messages.
func WithoutMessages(c *events.Compacted, notes ...events.Note) ([]byte, error) {
	out := *c
	out.Messages, out.Summary, out.MessagesOmitted = nil, nil, true
	if len(notes) > 0 {
		out.Notes = slices.Concat(c.Notes, notes)
		out.Edits = slices.DeleteFunc(slices.Clone(c.Edits), func(e events.Edit) bool { return e.Op.Repairs() })
	}
	return codec.Marshal(out)
}

// summary reads the summary that a compaction used, or returns nil.
func (t *Renderer) summary(ctx context.Context, ahead *Ahead, a events.Address, c *events.Compacted) (*events.Summary, error) {
	i := slices.IndexFunc(c.Edits, func(e events.Edit) bool { return e.Op == events.OpCondense })
	if i < 0 {
		return nil, nil
	}
	seq := measure.Seq(c.Edits[i].Seq)
	have, err := t.get(ctx, ahead, a, []measure.Seq{seq})
	if err != nil {
		return nil, fmt.Errorf("read summary: %w", err)
	}
	s, err := events.DecodeSummary(have[seq].data)
	if err == nil {
		s.Calls = nil // an agent does not need them
	}
	return s, err
}

// Prompt reads the system prompt and the tools from the turns that set them. A sequence of 0
// means that none set them.
func (t *Renderer) Prompt(ctx context.Context, a events.Address, system, tools measure.Seq) (s, d codec.Raw, err error) {
	var seqs []uint64
	if system != 0 {
		seqs = append(seqs, uint64(system))
	}
	if tools != 0 && tools != system {
		seqs = append(seqs, uint64(tools))
	}
	stored, err := t.Read(ctx, seqs)
	if err != nil {
		return nil, nil, fmt.Errorf("read prompt: %w", err)
	}
	for _, b := range stored {
		if at, err := events.ParseLog(b.Subject); err != nil || at.Address != a {
			return nil, nil, fmt.Errorf("read prompt: sequence %d belongs to another session", b.Seq)
		}
		turn, err := events.DecodeTurn(b.Data)
		if err != nil {
			return nil, nil, fmt.Errorf("read prompt: sequence %d: %w", b.Seq, errors.New(string(events.CodeOf(err))))
		}
		if b.Seq == uint64(system) {
			s = turn.System
		}
		if b.Seq == uint64(tools) {
			d = turn.Tools
		}
	}
	return s, d, nil
}
