package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Event is an event on its way into the log. Under its Nats-Msg-Id it is stored once, however often it is sent.
// Messages of other streams have other rules: an outcome and a chunk of a snapshot are fenced, an entry of the audit log
// is tried once.
type Event struct {
	*nats.Msg
	unknown bool // an attempt had no answer: the event may be stored
}

// NewEvent returns an event of a session, under a message id if id is not "".
func NewEvent(k events.Kind, a events.Address, id string, data []byte) (*Event, error) {
	subject, err := events.Input(k, a)
	if err != nil {
		return nil, err
	}
	e := &Event{Msg: &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}}
	if id != "" {
		e.Rename(id)
	}
	return e, nil
}

// Rename gives an event that is not stored another message id.
func (e *Event) Rename(id string) {
	e.Header.Set(nats.MsgIdHdr, id)
	e.unknown = false
}

// IDTakenError reports that the server dropped an event as a duplicate, because another message
// of the log has the same Nats-Msg-Id. The server compares ids over all tenants.
type IDTakenError struct {
	ID     string
	Seq    uint64 // of the other message
	Stored string // the id under which [PublishOnce] stored the event; "" if nothing was stored
}

func (e *IDTakenError) Error() string {
	if e.Stored != "" {
		return fmt.Sprintf("the message id %s is used by another event, at sequence %d; the event was stored under the id %s", e.ID, e.Seq, e.Stored)
	}
	return fmt.Sprintf("nothing was stored: the server has a message of the id %s already, at sequence %d", e.ID, e.Seq)
}

// MaxEvent is the largest event that the server takes, in bytes; 0 before the first connection.
func MaxEvent(nc *nats.Conn) int {
	const margin = 1 << 10 // for headers
	return max(connect.MaxPayload(nc)-margin, 0)
}

// Publish publishes the event once. A duplicate after an attempt without an answer is that attempt; any other is an
// [*IDTakenError].
func (e *Event) Publish(ctx context.Context, js jetstream.JetStream) (*jetstream.PubAck, error) {
	if most := MaxEvent(js.Conn()); most > 0 && len(e.Data) > most {
		return nil, events.NewInvalid(events.CodeTooLarge, "", fmt.Sprintf("the event has %d bytes; the server takes %d", len(e.Data), most))
	}
	ack, err := js.PublishMsg(ctx, e.Msg)
	switch {
	case err != nil:
		e.unknown = e.unknown || !jsapi.NotStored(err)
		return nil, err
	case ack.Duplicate && !e.unknown:
		return nil, &IDTakenError{ID: e.Header.Get(nats.MsgIdHdr), Seq: ack.Sequence}
	}
	return ack, nil
}

// attemptTimeout is the wait of an attempt for its acknowledgement.
const attemptTimeout = 2 * time.Second

// attempts are the pauses between attempts.
var attempts = retry.Pauses{First: 20 * time.Millisecond, Last: 500 * time.Millisecond}

// Persist publishes the event until it is acknowledged, and returns the error of the last attempt. It repeats an
// attempt if [jsapi.Republish] or again reports that another may succeed. again may be nil, and so may onRetry,
// which receives the error before each pause.
func (e *Event) Persist(ctx context.Context, js jetstream.JetStream, again func(error) bool, onRetry func(error)) (ack *jetstream.PubAck, err error) {
	_ = attempts.Do(ctx, onRetry, func() error { // err has more
		limited, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		ack, err = e.Publish(limited, js)
		return retry.When(jsapi.Republish(err) || again != nil && again(err), err)
	})
	return ack, err
}

// PublishOnce stores m under its Nats-Msg-Id, which several workers may use for the same event.
// If the server reports a duplicate of a message of another kind or session, a tenant has used
// the id, which it can compute. Then m is stored under a random id, and taken is not nil.
func PublishOnce(ctx context.Context, js jetstream.JetStream, m *nats.Msg) (taken *IDTakenError, err error) {
	e := &Event{Msg: m}
	_, err = e.Publish(ctx, js)
	taken, ok := errors.AsType[*IDTakenError](err)
	if !ok {
		return nil, err
	}
	stored, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.LogStream, jsapi.GetRequest{Seq: taken.Seq})
	switch {
	case err == nil && events.Logs(stored.Subject, m.Subject):
		return nil, nil
	case err != nil && !errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, fmt.Errorf("read the duplicate at sequence %d: %w", taken.Seq, err)
	}
	id := uuid.NewString()
	e.Rename(id)
	if _, err = e.Publish(ctx, js); err != nil {
		return nil, err
	}
	taken.Stored = id
	return taken, nil
}
