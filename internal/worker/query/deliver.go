package query

import (
	"bytes"
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
	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/limit"
)

// Publisher stores events for agents. Any goroutine may use it.
type Publisher struct {
	js         jetstream.JetStream
	read       *nats.Conn
	partitions int
	onError    func(error)
}

// NewPublisher returns one that publishes over a connection of a user that may, and reads
// what is stored over another.
func NewPublisher(publish, read *nats.Conn, partitions int, onError func(error)) (*Publisher, error) {
	js, err := jetstream.New(publish, jetstream.WithDefaultTimeout(tryTimeout))
	if err != nil {
		return nil, fmt.Errorf("new publisher: %w", err)
	}
	return &Publisher{js, read, partitions, onError}, nil
}

// Tries to publish one event.
const (
	tryTimeout  = 2 * time.Second
	publishTime = 6 * time.Second // of all tries
)

var pauses = retry.Pauses{First: 20 * time.Millisecond, Last: 500 * time.Millisecond}

// Deliver publishes an event until it is acknowledged. Its message id is its own id, as that
// of any publisher. The server compares message ids over all tenants: one that another
// session has used is replaced by one that follows from it and from the session, so that the
// event is stored, and once however often it is sent. The operation of the context holds no processor
// meanwhile. by is the service of this worker, nil for none: it decides large events one by one.
func (p *Publisher) Deliver(ctx context.Context, by *Service, k events.Kind, a events.Address, id string, body []byte) (seq uint64, duplicate bool, err error) {
	return p.paced(ctx, by, k, a, id, body, false)
}

// paced is Deliver. An id that follows from the content of an event names it, whatever else is in it.
func (p *Publisher) paced(ctx context.Context, by *Service, k events.Kind, a events.Address, id string, body []byte, follows bool) (seq uint64, duplicate bool, err error) {
	if by != nil && !by.config.Partitions.Log.Fits(k, a.Tenant, len(body)) {
		return 0, false, refusalOf(events.CodeStorageLimit, "the tenant holds as much of the log as others leave it",
			"Send it again when older turns have expired. The operator can raise --max-bytes, or erase sessions.")
	}
	err = limit.Of(ctx).Idle(ctx, func() error {
		stored, err := by.undecided(ctx, k, a, limit.Weight(body))
		if err != nil {
			return err
		}
		seq, duplicate, err = p.deliver(ctx, k, a, id, body, follows)
		if stored(seq); by != nil && seq > 0 && !duplicate {
			by.config.Partitions.Log.Stored(a.Tenant, len(body))
		}
		return err
	})
	return seq, duplicate, err
}

// undecided takes a place for an event of so many bytes whose decision takes long, for its size or
// that of its session, and for a smaller one of a tenant that used its part of the processors, until this
// worker has decided it or lost the partition, [events.DefaultWait] at most. Else a backlog of them could
// grow before the events of others. stored is called with the sequence of the event, 0 if it is not stored.
func (s *Service) undecided(ctx context.Context, k events.Kind, a events.Address, bytes int) (stored func(seq uint64), err error) {
	if s != nil && k != events.KindTurn {
		_, _, _ = s.inspect(a, func(l *compaction.Ledger) { bytes += l.Weight() }) // of another worker: its own limits
	}
	most := limit.Large
	if limit.Of(ctx).Spent() {
		most /= 8
	}
	if s == nil || bytes <= most {
		return func(uint64) {}, nil
	}
	release, err := limit.Of(ctx).Hold(ctx, limit.Undecided)
	if err != nil {
		return nil, err
	}
	return func(seq uint64) {
		if seq == 0 {
			release()
			return
		}
		go func() {
			defer release()
			_ = s.awaitDecided(s.answering, a, events.Await{Seq: seq})
		}()
	}, nil
}

func (p *Publisher) deliver(ctx context.Context, k events.Kind, a events.Address, id string, body []byte, follows bool) (seq uint64, duplicate bool, err error) {
	subject, err := events.Input(k, a)
	if err != nil {
		return 0, false, err
	}
	for _, msgID := range []string{id, boundID(a, k, id), uuid.NewString()} {
		seq, duplicate, err = p.send(ctx, subject, msgID, body)
		if err != nil || !duplicate {
			return seq, duplicate, err
		}
		same, err := p.isCopy(ctx, k, a, seq, body, follows)
		if err != nil || same {
			return seq, same, err
		}
	}
	return 0, false, refusalOf(events.CodeDuplicateID, "the id was used for another event", "Use an id of its own for each event.")
}

// boundID follows from a session and an id.
func boundID(a events.Address, k events.Kind, id string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("compactd event "+string(k)+" "+a.String()+" "+id)).String()
}

// isCopy reports whether what the server takes an event for is that event, sent before. It is
// an error if it is another event of the session.
func (p *Publisher) isCopy(ctx context.Context, k events.Kind, a events.Address, seq uint64, body []byte, follows bool) (bool, error) {
	stored, err := Reading(ctx, func() ([]stream.LogMessage, error) { return stream.GetLog(ctx, p.read, []uint64{seq}) })
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch same := stored[0].Subject == events.Logged(events.PartitionOf(a, p.partitions), k, a); {
	case same && (follows || bytes.Equal(stored[0].Data, body)):
		return true, nil
	case same:
		return false, refusalOf(events.CodeDuplicateID, "the id was used for another event of the session", "Use an id of its own for each event.")
	}
	return false, nil
}

// send publishes until there is an acknowledgement, or an error that no later try changes.
func (p *Publisher) send(ctx context.Context, subject, msgID string, body []byte) (seq uint64, duplicate bool, err error) {
	if most := p.MaxBytes(); len(body) > most {
		return 0, false, events.NewInvalid(events.CodeTooLarge, "", fmt.Sprintf("the event has %d bytes; the server takes %d", len(body), most))
	}
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	err = pauses.Do(ctx, nil, func() error {
		limited, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		ack, err := p.js.PublishMsg(limited, &nats.Msg{Subject: subject, Data: body, Header: nats.Header{nats.MsgIdHdr: {msgID}}})
		if err != nil {
			if again := jsapi.Unreachable(err) || errors.Is(err, context.DeadlineExceeded); again && ctx.Err() == nil {
				return err
			}
			return retry.Final(err)
		}
		seq, duplicate = ack.Sequence, ack.Duplicate
		return nil
	})
	switch api, refused := errors.AsType[*jetstream.APIError](err); {
	case refused:
		p.onError(fmt.Errorf("publish: %w", err))
		return 0, false, refusalOf(events.CodeUnavailable, "the server stores no events now: "+api.Description, "Send the same event again in a moment.")
	case err != nil:
		return 0, false, refusalOf(events.CodeUnavailable, "no acknowledgement came in time; the event may be stored", "Send the same event again, with the same id: it counts once.")
	}
	return seq, duplicate, nil
}

// MaxBytes is the largest event that the server takes.
func (p *Publisher) MaxBytes() int {
	const margin = 1 << 10 // for headers
	return connect.MaxPayload(p.js.Conn()) - margin
}

func refusalOf(code events.Code, message, hint string) *events.ServiceError {
	return &events.ServiceError{V: events.Version, Code: code, Message: message, Hint: hint}
}
