package agents

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"compactd/internal/events"
	"compactd/internal/worker/limit"
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
	// operator: it is for operators alone.
	operator bool
}

var verbs = []verb{
	{"turns", events.KindTurn, events.MaxTurnBytes, decodeID(events.DecodeNewTurn, func(t *events.Turn) string { return t.ID }), false, false},
	{"overflow", events.KindOverflow, events.MaxOverflowBytes, decodeID(events.DecodeOverflow, func(o *events.Overflow) string { return o.ID }), true, false},
	{"compact", events.KindCompact, events.MaxRequestBytes, decodeID(events.DecodeCompact, func(c *events.Compact) string { return c.ID }), true, false},
	{"rewind", events.KindRewind, events.MaxRequestBytes, decodeID(events.DecodeRewind, func(r *events.Rewind) string { return r.ID }), true, false},
	{"end", events.KindEnd, events.MaxRequestBytes, events.DecodeEnd, false, false},
	{"forget", events.KindForget, events.MaxRequestBytes, events.DecodeForget, false, true},
}

// Verbs lists the events that agents publish, by the last word of the path.
func Verbs() map[string]events.Kind {
	out := map[string]events.Kind{}
	for _, v := range verbs {
		out[v.path] = v.kind
	}
	return out
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

// publish stores an event, and answers when it is decided.
func (e *Edge) publish(w http.ResponseWriter, r *http.Request, v verb) error {
	a, err := session(r)
	if err != nil {
		return err
	}
	if v.operator && tokenOf(r).role != RoleOperator {
		return errForOperators
	}
	wait, err := waitOf(r)
	if err != nil {
		return err
	}
	count(r, a.Tenant)
	event, err := e.store(w, r, a, v)
	if err != nil {
		return err
	}
	limit.Of(r.Context()).Free() // of the body, before memory for a history
	status, err := e.answered(r.Context(), a, v, event, time.Now().Add(wait))
	if err != nil {
		return err
	}
	limit.Of(r.Context()).Rest()
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
	body, err := query.ReadBody(w, r, limit.Body{Most: v.most})
	if err == nil {
		err = compute(r.Context(), limit.Weight(body))
	}
	if err != nil {
		return nil, err
	}
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

// compute takes a processor for a body of so many bytes, if that is many.
func compute(ctx context.Context, bytes int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, query.AnswerTimeout, query.ErrBusy)
	defer cancel()
	return limit.Of(ctx).ComputeOver(ctx, bytes)
}

// deliver publishes an event until it is acknowledged; see [query.Publisher.Deliver].
func (e *Edge) deliver(ctx context.Context, k events.Kind, a events.Address, id string, body []byte) (seq uint64, duplicate bool, err error) {
	s, _ := e.config.Service() // while it has none, the event is stored
	return e.publisher.Deliver(ctx, s, k, a, id, body)
}
