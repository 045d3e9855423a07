package erase

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// RefusedError reports that a worker refused the event.
type RefusedError struct{ events.Rejected }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the worker refused it: %s: %s; %s", e.Code, e.Message, e.Hint)
}

// NotErasedError reports that an erasure is requested, but the wait ended before it was published
// as done.
type NotErasedError struct {
	Seq uint64 // of the session.forget
	Err error
}

func (e *NotErasedError) Error() string {
	return fmt.Sprintf("the session.forget is stored at sequence %d, and no worker has published that it is done (%v); "+
		"it is done as soon as a worker serves the partition: check that one runs, and call again to wait on", e.Seq, e.Err)
}

func (e *NotErasedError) Unwrap() error { return e.Err }

// Request publishes the session.forget of a session and waits for its session.erased. A repeated
// call is safe. Errors after the event was stored are [*RefusedError] and [*NotErasedError].
func Request(ctx context.Context, js jetstream.JetStream, a events.Address, id string) (*events.Erased, error) {
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("erase session: %w", err)
	}
	answers, stop, err := answersTo(ctx, js, a)
	if err != nil {
		return nil, fmt.Errorf("erase session: %w", err)
	}
	defer stop()
	store, cancel := context.WithTimeout(context.WithoutCancel(ctx), jsapi.Timeout) // or its result is unknown
	defer cancel()
	ack, err := publishForget(store, js, a, id)
	if err != nil {
		return nil, fmt.Errorf("erase session: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil, &NotErasedError{ack.Sequence, context.Cause(ctx)}
		case m := <-answers:
			if done, err := answerOf(m, ack.Sequence); done != nil || err != nil {
				return done, err
			}
		}
	}
}

func publishForget(ctx context.Context, js jetstream.JetStream, a events.Address, id string) (*jetstream.PubAck, error) {
	data, err := codec.Marshal(events.Header{V: events.Version, ID: id})
	if err != nil {
		return nil, err
	}
	e, err := stream.NewEvent(events.KindForget, a, id, data)
	if err != nil {
		return nil, err
	}
	ack, err := e.Publish(ctx, js)
	if _, taken := errors.AsType[*stream.IDTakenError](err); taken {
		e.Rename(uuid.NewString())
		return e.Publish(ctx, js)
	}
	return ack, err
}

// answersTo returns a channel of new messages of OUTCOMES that may answer a session.forget. It
// survives reconnects.
func answersTo(ctx context.Context, js jetstream.JetStream, a events.Address) (<-chan jetstream.Msg, func(), error) {
	state, err := topology.State(ctx, js, topology.OutcomesStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil, topology.ErrNoStreams
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := stream.OpenReader(ctx, js, topology.OutcomesStream, jetstream.ConsumerConfig{
		FilterSubjects: []string{"out.*." + string(events.KindErased) + "." + a.String(), "out.*." + string(events.KindRejected) + "." + a.String()},
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:    state.Last + 1,
	})
	if err != nil {
		return nil, nil, err
	}
	out := make(chan jetstream.Msg)
	ctx, cancel := context.WithCancel(ctx)
	r.Handle(func(m jetstream.Msg, _ *jetstream.MsgMetadata) error {
		if !stream.Outcome(m.Subject(), m.Headers()) {
			return nil
		}
		select {
		case out <- m:
		case <-ctx.Done():
		}
		return nil
	})
	r.Start()
	return out, func() { cancel(); r.Leave() }, nil
}

// answerOf reads an outcome. It returns nil if the outcome does not answer the event at seq.
func answerOf(m jetstream.Msg, seq uint64) (*events.Erased, error) {
	at, err := events.ParseOutcome(m.Subject())
	if err != nil {
		return nil, err
	}
	body, err := events.DecodeOutcome(at.Kind, m.Data())
	if err != nil {
		return nil, err
	}
	switch b := body.(type) {
	case *events.Erased:
		if b.Seq >= seq { // a later erasure includes this one
			return b, nil
		}
	case *events.Rejected:
		if b.Seq == seq {
			return nil, &RefusedError{*b}
		}
	}
	return nil, nil
}
