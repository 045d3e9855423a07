package agents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/events"
	"compactd/internal/worker/query"
)

// verb is an event that agents publish.
type verb struct {
	path string
	kind events.Kind
	most int // bytes of the payload
	// decode reads the payload as a worker does, and returns the id in it.
	decode func([]byte) (id string, err error)
	// answers: a session.compacted answers the event, and the history is sent with it.
	answers bool
}

var verbs = []verb{
	{"turns", events.KindTurn, events.MaxTurnBytes, decodeID(events.DecodeTurn, func(t *events.Turn) string { return t.ID }), false},
	{"overflow", events.KindOverflow, events.MaxOverflowBytes, decodeID(events.DecodeOverflow, func(o *events.Overflow) string { return o.ID }), true},
	{"compact", events.KindCompact, events.MaxRequestBytes, decodeID(events.DecodeCompact, func(c *events.Compact) string { return c.ID }), true},
	{"rewind", events.KindRewind, events.MaxRequestBytes, decodeID(events.DecodeRewind, func(r *events.Rewind) string { return r.ID }), true},
	{"end", events.KindEnd, events.MaxRequestBytes, events.DecodeEnd, false},
}

func verbOf(k events.Kind) verb {
	return verbs[slices.IndexFunc(verbs, func(v verb) bool { return v.kind == k })]
}

func decodeID[T any](decode func([]byte) (*T, error), id func(*T) string) func([]byte) (string, error) {
	return func(data []byte) (string, error) {
		v, err := decode(data)
		if err != nil {
			return "", err
		}
		return id(v), nil
	}
}

// Tries to publish one event.
const (
	tryTimeout  = 2 * time.Second
	publishTime = 6 * time.Second // of all tries
)

var pauses = retry.Pauses{First: 20 * time.Millisecond, Last: 500 * time.Millisecond}

// publish stores an event, and answers when it is decided.
func (e *Edge) publish(w http.ResponseWriter, r *http.Request, v verb) error {
	a, err := session(r)
	if err != nil {
		return err
	}
	wait, err := waitOf(r)
	if err != nil {
		return err
	}
	done, err := e.tenants.take(a.Tenant, use{events: 1})
	if err != nil {
		return err
	}
	defer done()
	event, err := e.store(w, r, a, v)
	if err != nil {
		return err
	}
	status, err := e.answered(r.Context(), a, v, event, time.Now().Add(wait))
	if err != nil {
		return err
	}
	writeEvent(w, status, event)
	return nil
}

// answered waits until an event that is stored is decided, and returns the status of the answer.
func (e *Edge) answered(ctx context.Context, a events.Address, v verb, event *events.EventResponse, until time.Time) (status int, err error) {
	s, err := e.config.Service()
	if err == nil {
		err = e.await(ctx, s, a, v, event, until)
	}
	switch {
	case err != nil: // it is stored, and that is what counts
		refused := query.Refusal(err)
		if refused.Code != events.CodeTurnPending && refused.Code != events.CodeUnavailable {
			return 0, err
		}
		event.Code, event.Message = events.CodeTurnPending, "the event is stored, and was not decided in time"
		event.Hint = "Go on, or request the outcome of this sequence. To send the event again is safe: it counts once."
		return http.StatusAccepted, nil
	case !event.Accepted:
		return http.StatusUnprocessableEntity, nil
	}
	return http.StatusOK, nil
}

// waitOf is how long a request waits for its outcome.
func waitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait_ms")
	if text == "" {
		return events.DefaultWait, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 || ms > events.MaxWait.Milliseconds() {
		return 0, events.NewInvalid(events.CodeOutOfRange, "wait_ms", fmt.Sprintf("must be between 0 and %d", events.MaxWait.Milliseconds()))
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func writeEvent(w http.ResponseWriter, status int, event *events.EventResponse) {
	data, err := events.Marshal(event)
	if err != nil {
		query.WriteError(w, query.Refusal(err))
		return
	}
	query.WriteData(w, status, "application/json", data)
}

// store reads an event, checks it as a worker will, and publishes it.
func (e *Edge) store(w http.ResponseWriter, r *http.Request, a events.Address, v verb) (*events.EventResponse, error) {
	body, done, err := e.body(w, r, a.Tenant, v.most)
	if err != nil {
		return nil, err
	}
	defer done()
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	id, err := v.decode(body)
	if err != nil {
		return nil, err
	}
	keys := r.Header.Values("Idempotency-Key")
	switch {
	case len(keys) > 1 || len(keys) == 1 && !events.ValidEventID(keys[0]):
		return nil, events.NewInvalid(events.CodeBadID, "", "Idempotency-Key is not one header of 1 to 256 bytes without control characters")
	case len(keys) == 1 && id != "" && keys[0] != id:
		return nil, events.NewInvalid(events.CodeBadID, "id", "is another than Idempotency-Key")
	case len(keys) == 1:
		id = keys[0]
	}
	event := &events.EventResponse{V: events.Version, ID: cmp.Or(id, uuid.NewString())}
	event.Seq, event.Duplicate, err = e.deliver(r.Context(), v.kind, a, event.ID, body)
	return event, err
}

// deliver publishes an event until it is acknowledged. Its message id is its own id, as that
// of any publisher. The server compares message ids over all tenants: one that another
// session has used is replaced by one that follows from it and from the session, so that the
// event is stored, and once however often it is sent.
func (e *Edge) deliver(ctx context.Context, k events.Kind, a events.Address, id string, body []byte) (seq uint64, duplicate bool, err error) {
	subject, err := events.Input(k, a)
	if err != nil {
		return 0, false, err
	}
	for _, msgID := range []string{id, boundID(a, k, id), uuid.NewString()} {
		seq, duplicate, err = e.send(ctx, subject, msgID, body)
		if err != nil || !duplicate {
			return seq, duplicate, err
		}
		same, err := e.isCopy(ctx, k, a, seq, body)
		if err != nil || same {
			return seq, same, err
		}
	}
	return 0, false, refusal(events.CodeDuplicateID, "the id was used for another event", "Use an id of its own for each event.")
}

// boundID follows from a session and an id.
func boundID(a events.Address, k events.Kind, id string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("compactd event "+string(k)+" "+a.String()+" "+id)).String()
}

// isCopy reports whether what the server takes an event for is that event, sent before. It is
// an error if it is another event of the session.
func (e *Edge) isCopy(ctx context.Context, k events.Kind, a events.Address, seq uint64, body []byte) (bool, error) {
	stored, err := stream.GetLog(ctx, e.config.Read, []uint64{seq})
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch same := stored[0].Subject == events.Logged(events.PartitionOf(a, e.config.Partitions), k, a); {
	case same && bytes.Equal(stored[0].Data, body):
		return true, nil
	case same:
		return false, refusal(events.CodeDuplicateID, "the id was used for another event of the session", "Use an id of its own for each event.")
	}
	return false, nil
}

// send publishes until there is an acknowledgement, or an error that no later try changes.
func (e *Edge) send(ctx context.Context, subject, msgID string, body []byte) (seq uint64, duplicate bool, err error) {
	const margin = 1 << 10 // for headers
	if most := connect.MaxPayload(e.config.Publish); most > 0 && len(body)+margin > most {
		return 0, false, events.NewInvalid(events.CodeTooLarge, "", fmt.Sprintf("the event has %d bytes; the server takes %d", len(body), most))
	}
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	tries := 0
	err = pauses.Do(ctx, nil, func() error {
		tries++
		limited, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		ack, err := e.js.PublishMsg(limited, &nats.Msg{Subject: subject, Data: body, Header: nats.Header{nats.MsgIdHdr: {msgID}}})
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
		e.config.OnError(fmt.Errorf("publish: %w", err))
		return 0, false, refusal(events.CodeUnavailable, "the server stores no events now: "+api.Description, "Send the same event again in a moment.")
	case err != nil:
		return 0, false, refusal(events.CodeUnavailable, "no acknowledgement came in time; the event may be stored", "Send the same event again, with the same id: it counts once.")
	}
	return seq, duplicate, nil
}
