package replay

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

const (
	// retryFor is the time for which an event without an answer is sent again, as by an agent.
	retryFor = time.Minute
	// quietFor is the time of failing tries before a report: a reconnect.
	quietFor = time.Second
	// retryPause is between two tries; a reconnect takes about as long.
	retryPause = 100 * time.Millisecond
)

// CodeDuplicateID names a [*DuplicateError] to programs.
const CodeDuplicateID events.Code = "client_duplicate_id"

// DuplicateError states that the server has the message id of an event that was sent for
// the first time: nothing was stored of the event. The message that has the id is an
// earlier copy, or one of another tenant, for the server compares ids over all of them.
type DuplicateError struct {
	ID  string
	Seq uint64 // of the message that has the id
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("nothing was stored: the server has a message of the id %s already, at sequence %d", e.ID, e.Seq)
}

// Publisher publishes events until they are acknowledged. Its fields may be used by many goroutines.
type Publisher struct {
	JS jetstream.JetStream
	// Waiting is called with the error of each try that is not the last, from a second after the first; nil is no one.
	Waiting func(error)
}

// Persist publishes an event until it is acknowledged, for a minute at most: under
// one id it is stored once, however often it is sent. It waits for an answer, a stream and room in
// it. A duplicate of a first try is a [*DuplicateError]; one that follows a try without an answer
// is that try.
func (p Publisher) Persist(ctx context.Context, k events.Kind, a events.Address, id string, payload []byte) (ack *jetstream.PubAck, err error) {
	began, unknown := time.Now(), false
	waiting := func(err error) {
		if p.Waiting != nil && time.Since(began) > quietFor {
			p.Waiting(err)
		}
	}
	_ = retry.Every(retryPause).Do(ctx, waiting, func() error { // err has more
		ack, err = Publish(ctx, p.JS, k, a, id, payload)
		taken, repeated := errors.AsType[*DuplicateError](err)
		switch {
		case repeated && unknown:
			ack, err = &jetstream.PubAck{Stream: topology.LogStream, Sequence: taken.Seq, Duplicate: true}, nil
		case err != nil && time.Since(began) < retryFor && (jsapi.Republish(err) || jsapi.Full(err)):
			unknown = unknown || !jsapi.NotStored(err)
			return err
		}
		return retry.Final(err)
	})
	return ack, err
}

// space is the namespace of message ids.
var space = uuid.MustParse("3b1f6f43-9f0f-5d2e-8d0b-5a1f2f3b6c77")

// MessageID is the Nats-Msg-Id of an event that has the same one whenever it is
// published: it is bound to tenant and session. "" where the event has no id.
func MessageID(a events.Address, id string) string {
	if id == "" {
		return ""
	}
	return uuid.NewSHA1(space, fmt.Appendf(nil, "%s\x00%s\x00%s", a.Tenant, a.Session, id)).String()
}

// Publish publishes an event of any kind, once, and returns where it is in the log. A
// duplicate is a [*DuplicateError].
func Publish(ctx context.Context, js jetstream.JetStream, k events.Kind, a events.Address, id string, payload []byte) (*jetstream.PubAck, error) {
	subject, err := events.Input(k, a)
	if err != nil {
		return nil, err
	}
	if limit := connect.MaxPayload(js.Conn()); len(payload)+1024 > limit {
		return nil, events.NewInvalid(events.CodeTooLarge, "", fmt.Sprintf("the event has %d bytes; the server takes %d", len(payload), limit))
	}
	m := &nats.Msg{Subject: subject, Data: payload, Header: nats.Header{}}
	if id != "" {
		m.Header.Set(nats.MsgIdHdr, id)
	}
	ack, err := js.PublishMsg(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	if ack.Duplicate {
		return nil, fmt.Errorf("publish: %w", &DuplicateError{id, ack.Sequence})
	}
	return ack, nil
}
