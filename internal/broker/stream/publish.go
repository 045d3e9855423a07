package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// IDTakenError reports that the server dropped an event as a duplicate, because another message
// of the log has the same Nats-Msg-Id. The server compares ids over all tenants. The event was
// then stored under a random id.
type IDTakenError struct {
	ID  string
	Seq uint64 // of the other message
}

func (e *IDTakenError) Error() string {
	return fmt.Sprintf("the message id %s is used by another event, at sequence %d; the event was stored under a random id", e.ID, e.Seq)
}

// PublishOnce stores m under its Nats-Msg-Id, which several workers may use for the same event.
// If the server reports a duplicate of a message of another kind or session, a tenant has used
// the id, which it can compute. Then m is stored under a random id, and taken is not nil.
func PublishOnce(ctx context.Context, js jetstream.JetStream, m *nats.Msg) (taken *IDTakenError, err error) {
	ack, err := js.PublishMsg(ctx, m)
	if err != nil || !ack.Duplicate {
		return nil, err
	}
	stored, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.LogStream, jsapi.GetRequest{Seq: ack.Sequence})
	switch {
	case err == nil && events.Logs(stored.Subject, m.Subject):
		return nil, nil
	case err != nil && !errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, fmt.Errorf("read the duplicate at sequence %d: %w", ack.Sequence, err)
	}
	taken = &IDTakenError{ID: m.Header.Get(nats.MsgIdHdr), Seq: ack.Sequence}
	if _, err := PublishUnderRandomID(ctx, js, m); err != nil {
		return nil, err
	}
	return taken, nil
}

// errCopied: the server reports a duplicate of a random id.
var errCopied = errors.New("the server reports a duplicate of a random message id; something on the way to the server copies ids")

// PublishUnderRandomID stores m under a random id.
func PublishUnderRandomID(ctx context.Context, js jetstream.JetStream, m *nats.Msg) (*jetstream.PubAck, error) {
	m.Header.Set(nats.MsgIdHdr, uuid.NewString())
	ack, err := js.PublishMsg(ctx, m)
	if err == nil && ack.Duplicate {
		return nil, errCopied
	}
	return ack, err
}
