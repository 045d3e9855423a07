package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
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
	kind     events.Kind
	id       string
	payload  []byte
	config   *settings // that a turn carries, or an earlier one did
	deferred *offer    // came before the acknowledgement it depends on

	msgID      string // Nats-Msg-Id, which is id unless another client has used that
	unknown    bool   // a try under msgID had no answer, so that it may be stored
	collisions int    // ids that other clients had used
}

// newMessage is an event before its first try.
func newMessage(k events.Kind, id string, payload []byte, config *settings) *message {
	return &message{kind: k, id: id, payload: payload, config: config, msgID: id}
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
	return newMessage(events.KindTurn, w.ID, payload, s.config), t, nil
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

// tryTimeout is the wait of a try for its acknowledgement.
const tryTimeout = 2 * time.Second

// pauses are those between tries.
var pauses = retry.Pauses{First: 20 * time.Millisecond, Last: time.Second}

// margin is the room for headers in the server's max_payload.
const margin = 1 << 10

// maxCollisions bounds the ids of an event that other clients have used; more end its delivery with
// [CodeDuplicateID].
const maxCollisions = 3

// deliver publishes an event until it is acknowledged, and returns its sequence. It
// is stored once, however often it is sent: id and number stay. The server compares
// message ids over all tenants. A duplicate of a first try is the event of another
// client, and nothing was stored: the event goes out again under a new message id.
// After a try without an answer a duplicate is that try. Final errors are [CodeTooLarge],
// [CodeDuplicateID] and a refusal of the server; it ends with [CodeUnacknowledged] when ctx ends
// or the connection is closed for good.
func (s *Session) deliver(ctx context.Context, m *message) (seq uint64, err error) {
	subject, err := events.Input(m.kind, s.at)
	if err != nil {
		return 0, typed(err)
	}
	ctx, end := trace.Start(ctx, "publish "+string(m.kind), s.at)
	defer func() { end(err) }()
	_ = pauses.Do(ctx, nil, func() error { // err has more
		seq, err = s.send(ctx, subject, m)
		return retry.When(retryable(err) && !s.c.nc.IsClosed(), err)
	})
	if retryable(err) {
		err = newError(CodeUnacknowledged, "no acknowledgement came in time: "+err.Error(), "Is a NATS server running there, and has a worker ever run on it?")
	}
	if err != nil {
		return 0, fmt.Errorf("publish %s: %w", m.kind, err)
	}
	return seq, nil
}

// errDuplicate: another client has used the message id.
var errDuplicate = errors.New("the message id was used by another client")

// send publishes an event once.
func (s *Session) send(ctx context.Context, subject string, m *message) (uint64, error) {
	if limit := connect.MaxPayload(s.c.nc); limit > 0 && len(m.payload)+margin > limit {
		return 0, newError(CodeTooLarge, fmt.Sprintf("the event has %d bytes; the server takes %d", len(m.payload), limit), events.Codes[events.CodeTooLarge].Hint)
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	out := &nats.Msg{Subject: subject, Data: m.payload, Header: nats.Header{nats.MsgIdHdr: {m.msgID}}}
	trace.Set(ctx, out.Header)
	ack, err := s.c.js.PublishMsg(ctx, out)
	switch {
	case err != nil:
		m.unknown = m.unknown || !jsapi.NotStored(err)
		return 0, err
	case ack.Duplicate && !m.unknown:
		return 0, s.renewID(m, ack.Sequence)
	default:
		return ack.Sequence, nil
	}
}

// renewID gives an event another message id, and returns errDuplicate: a message of another
// client, at seq, has the one it had.
func (s *Session) renewID(m *message, seq uint64) error {
	if s.c.onDuplicate != nil {
		s.c.onDuplicate(Duplicate{Session: s.at.Session, ID: m.msgID, Seq: seq})
	}
	m.msgID = uuid.NewString()
	if m.collisions++; m.collisions < maxCollisions {
		return errDuplicate
	}
	return newError(CodeDuplicateID, fmt.Sprintf("the server reports a duplicate of %d random message ids; nothing was stored", m.collisions),
		"Something between this client and the server copies message ids: connect without it.")
}

// retryable reports whether sending the event again may succeed. The end of a context or of the connection counts: it
// leaves open whether the event is stored, and deliver, which stops then, reports it as unacknowledged.
func retryable(err error) bool {
	return jsapi.Republish(err) || errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrConnectionClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, errDuplicate)
}
