package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/trace"
)

// Turn has the messages appended to the conversation since the last one. Publish one after every call of the
// model, also with tool calls that are still open: their results belong to the next.
type Turn struct {
	// Messages are values that marshal to messages of the session's dialect.
	Messages []any
	// Usage is the provider's count for the call, in its own shape; nil for none. It belongs to the history
	// that Context returned last.
	Usage any
	// ReplacesFrom takes back the turns from this number on, and makes this one turn
	// that number: to regenerate or edit. 1 replaces the whole history, and may change
	// its dialect; without Messages it only takes back. 0 appends.
	ReplacesFrom int64
}

// message is an event on its way to the log.
type message struct {
	*stream.Event
	kind     events.Kind
	id       string
	config   *settings // that a turn carries, or an earlier one did
	deferred *offer    // came before the acknowledgement it depends on
}

// newMessage is an event before its first try.
func (s *Session) newMessage(k events.Kind, id string, payload []byte, config *settings) (*message, error) {
	e, err := stream.NewEvent(k, s.at, id, payload)
	return &message{Event: e, kind: k, id: id, config: config}, err
}

// wireTurn is a session.turn. The settings that it carries hold from then on.
type wireTurn = events.WireTurn[codec.Raw]

// Publish appends a turn, and returns when it is stored. A turn that no worker would
// accept is an [*Error], and nothing is sent. After CodeUnacknowledged the turn still
// belongs to the session: do not publish it again; the next call sends it until it is
// acknowledged. If an earlier turn was refused, Publish returns that [*Error], and
// this turn was not sent.
func (s *Session) Publish(ctx context.Context, t Turn) error {
	release, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer release()
	messages := make([]codec.Raw, len(t.Messages))
	for i, m := range t.Messages {
		if messages[i], err = encode(m); err != nil {
			return fmt.Errorf("encode messages[%d]: %w", i, err)
		}
	}
	usage, err := encode(t.Usage)
	if err != nil {
		return fmt.Errorf("encode usage: %w", err)
	}
	return s.publish(ctx, messages, usage, t.ReplacesFrom)
}

// publish sends one turn; from 0 appends it. The caller holds the turn.
func (s *Session) publish(ctx context.Context, messages []codec.Raw, usage codec.Raw, from int64) error {
	s.mu.Lock()
	w := s.compose(messages, usage, from)
	m, t, err := s.check(w)
	if err != nil {
		s.mu.Unlock()
		return typed(err)
	}
	if w.ReplacesFrom > 0 {
		if !s.view.cut(w.ReplacesFrom) { // part of the prefix was retracted
			s.state.raise(stale)
		}
		s.view.retracted.add(retraction{unacknowledged, w.ReplacesFrom})
	}
	s.view.append(own{w.Number, w.ID, t.Messages, w.Generation})
	s.format = s.dialect()
	if w.Format != "" {
		s.format = t.Format
	}
	s.open = m
	s.mu.Unlock()
	return s.flush(ctx)
}

// compose numbers a turn.
func (s *Session) compose(messages []codec.Raw, usage codec.Raw, from int64) *wireTurn {
	w := &wireTurn{V: events.Version, Turn: events.Turn{ID: uuid.NewString(), Number: s.view.last + 1, Generation: s.called, Messages: messages}, Usage: usage}
	if from == 0 && s.view.parked {
		from = w.Number
	}
	if from > 0 {
		w.Number, w.ReplacesFrom = from, from
	}
	if s.sent != s.config {
		c := s.config
		w.Model, w.Format, w.System, w.Tools, w.Policy = (*events.Model)(c.Model), events.Format(c.Format), c.System, c.Tools, c.Policy
	}
	return w
}

// check decodes and validates a turn as a worker does.
func (s *Session) check(w *wireTurn) (*message, *events.Turn, error) {
	if w.Number > s.view.last+1 || w.Number < 1 {
		return nil, nil, events.NewInvalid(events.CodeOutOfRange, "replaces_from", fmt.Sprintf("must be between 1 and %d", s.view.last+1))
	}
	payload, err := codec.Marshal(w)
	if err != nil {
		return nil, nil, fmt.Errorf("encode turn: %w", err)
	}
	t, err := events.DecodeNewTurn(payload)
	if err != nil {
		return nil, nil, err
	}
	format := s.dialect()
	if t.Format != "" && t.Format != format && w.ReplacesFrom != 1 {
		return nil, nil, events.NewInvalid(events.CodeFormatChanged, "format", "is not that of the session, "+string(format))
	}
	if t.Format != "" {
		format = t.Format
	}
	if _, err := format.ReadNew(t.Messages); err != nil {
		return nil, nil, err
	}
	m, err := s.newMessage(events.KindTurn, w.ID, payload, s.config)
	return m, t, err
}

// flush sends the open event until it is acknowledged.
func (s *Session) flush(ctx context.Context) error {
	s.mu.Lock()
	m := s.open
	s.mu.Unlock()
	if m == nil {
		return nil
	}
	seq, err := s.deliver(ctx, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, CodeUnacknowledged) {
		return err
	}
	open := s.open // none if the session was erased meanwhile
	s.open = nil
	if err != nil { // not stored; the log shows whether an earlier try was
		s.state.raise(stale)
		return err
	}
	s.acked, s.sent, s.view.parked = seq, m.config, false
	s.view.retracted.acknowledge(seq)
	if open != nil && open.deferred != nil {
		s.view.accept(*open.deferred)
	}
	return nil
}

// maxCollisions bounds the ids of an event that other clients have used; more end its delivery with
// [CodeDuplicateID].
const maxCollisions = 3

// deliver publishes an event until it is acknowledged, and returns its sequence. It
// is stored once, however often it is sent: id and number stay. The server compares
// message ids over all tenants. An id that another client has used is replaced: nothing
// was stored under it. Final errors are [CodeTooLarge], [CodeDuplicateID] and a refusal of
// the server; it ends with [CodeUnacknowledged] when ctx ends or the connection is closed for good.
func (s *Session) deliver(ctx context.Context, m *message) (seq uint64, err error) {
	ctx, end := trace.Start(ctx, "publish "+string(m.kind), s.at)
	defer func() { end(err) }()
	trace.Set(ctx, m.Header)
	ack, err := m.Persist(ctx, s.c.js, nil, nil)
	for n := 1; s.taken(m, err) && n < maxCollisions; n++ {
		ack, err = m.Persist(ctx, s.c.js, nil, nil)
	}
	switch {
	case err == nil:
		return ack.Sequence, nil
	case errors.As(err, new(*stream.IDTakenError)):
		err = newError(CodeDuplicateID, fmt.Sprintf("the server reports a duplicate of %d random message ids; nothing was stored", maxCollisions),
			"Something between this client and the server copies message ids: connect without it.")
	case jsapi.Republish(err), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, context.Canceled): // it may be stored
		err = newError(CodeUnacknowledged, "no acknowledgement came in time: "+err.Error(), "Is a NATS server running there, and has a worker ever run on it?")
	}
	return 0, fmt.Errorf("publish %s: %w", m.kind, typed(err))
}

// taken reports whether a message of another client has the message id of an event, and then gives the event another.
func (s *Session) taken(m *message, err error) bool {
	taken, ok := errors.AsType[*stream.IDTakenError](err)
	if !ok {
		return false
	}
	if s.c.onDuplicate != nil {
		s.c.onDuplicate(Duplicate{Session: s.at.Session, ID: taken.ID, Seq: taken.Seq})
	}
	m.Rename(uuid.NewString())
	return true
}
