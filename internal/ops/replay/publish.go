package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/events"
)

const (
	// retryFor is the time for which an event without an answer is sent again, as by an agent.
	retryFor = time.Minute
	// quietFor is the time of failing tries before a report: a reconnect.
	quietFor = time.Second
)

// CodeDuplicateID names a [*stream.IDTakenError] to programs.
const CodeDuplicateID events.Code = "client_duplicate_id"

// Publisher publishes events until they are acknowledged. Its fields may be used by many goroutines.
type Publisher struct {
	JS jetstream.JetStream
	// Waiting is called with the error of each try that is not the last, from a second after the first; nil is no one.
	Waiting func(error)
}

// Persist publishes an event until it is acknowledged, for a minute at most: see [stream.Event]. It waits for an answer,
// a stream and room in it.
func (p Publisher) Persist(ctx context.Context, k events.Kind, a events.Address, id string, payload []byte) (*jetstream.PubAck, error) {
	e, err := stream.NewEvent(k, a, id, payload)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()
	began := time.Now()
	ack, err := e.Persist(ctx, p.JS, jsapi.Full, func(err error) {
		if p.Waiting != nil && time.Since(began) > quietFor {
			p.Waiting(err)
		}
	})
	return ack, jsapi.Wrap(err, "publish")
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
