package agents

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"compactd/internal/events"
	"compactd/internal/tokens"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/service"
)

// verb is an event that agents publish.
type verb struct {
	path     string
	kind     events.Kind
	most     int                                      // bytes of the payload
	decode   func([]byte) (events.Publishable, error) // reads the payload as a worker does
	operator bool                                     // only for operators
}

var verbs = []verb{
	{"turns", events.KindTurn, events.MaxTurnBytes, decoding(events.DecodeNewTurn), false},
	{"overflow", events.KindOverflow, events.MaxOverflowBytes, decoding(events.DecodeOverflow), false},
	{"compact", events.KindCompact, events.MaxRequestBytes, decoding(events.Decode[events.Compact]), false},
	{"rewind", events.KindRewind, events.MaxRequestBytes, decoding(events.Decode[events.Rewind]), false},
	{"end", events.KindEnd, events.MaxRequestBytes, decoding(events.Decode[events.End]), false},
	{"forget", events.KindForget, events.MaxRequestBytes, decoding(events.Decode[events.Erasure]), true},
}

func decoding[P events.Publishable](decode func([]byte) (P, error)) func([]byte) (events.Publishable, error) {
	return func(data []byte) (events.Publishable, error) { return decode(data) }
}

// publish stores an event, and answers when it is decided.
func (e *Edge) publish(w http.ResponseWriter, r *http.Request, v verb) error {
	a, err := session(r)
	if err != nil {
		return err
	}
	if v.operator && service.TokenOf(r).Role != tokens.RoleOperator {
		return errForOperators
	}
	count(r, a.Tenant)
	return publish(w, r, e.config.Service, a, v)
}

// ServeOperators adds the events that operators publish without a token of the tokens file: they compact, rewind and
// end sessions of any tenant.
func ServeOperators(mux *service.Mux, current func() (*service.Service, error)) {
	for _, v := range verbs {
		if v.kind != events.KindCompact && v.kind != events.KindRewind && v.kind != events.KindEnd {
			continue
		}
		mux.Route(http.MethodPost, sessionPath+"/"+v.path, service.ForOperators(current, func(w http.ResponseWriter, r *http.Request) error {
			s, err := current()
			if err != nil {
				return err
			}
			a := events.Address{Tenant: r.PathValue("tenant"), Session: r.PathValue("session")}
			if err := a.Validate(); err != nil {
				return err
			}
			return publish(w, r, s, a, v)
		}))
	}
}

// publish stores an event of a session, and answers when it is decided.
func publish(w http.ResponseWriter, r *http.Request, s *service.Service, a events.Address, v verb) error {
	wait, err := waitOf(r)
	if err != nil {
		return err
	}
	in := &service.Event{Address: a, Kind: v.kind, Wait: wait}
	if err := read(w, r, v, in); err != nil {
		return err
	}
	var unknown []string
	if v.kind != events.KindTurn {
		unknown = events.UnknownFields(in.Text, in.Payload)
	}
	out, err := s.Publish(r.Context(), in)
	if err != nil {
		return err
	}
	out.Unknown = unknown
	status := http.StatusOK
	switch {
	case !out.Decided:
		status = http.StatusAccepted
	case !out.Accepted:
		status = http.StatusUnprocessableEntity
	}
	return service.Write(r.Context(), w, status, out)
}

// waitOf returns the time that a request waits for its outcome.
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

// read reads an event, and checks it like the deciding worker.
func read(w http.ResponseWriter, r *http.Request, v verb, in *service.Event) (err error) {
	if in.Text, err = readComputing(w, r, v.most); err != nil {
		return err
	}
	if len(bytes.TrimSpace(in.Text)) == 0 {
		in.Text = []byte("{}")
	}
	if in.Payload, err = v.decode(in.Text); err != nil {
		return err
	}
	in.ID = in.Payload.EventID()
	keys := r.Header.Values("Idempotency-Key")
	switch {
	case len(keys) > 1 || len(keys) == 1 && !events.ValidEventID(keys[0]):
		return events.NewInvalid(events.CodeBadID, "", "Idempotency-Key is not one header of 1 to 256 bytes without control characters")
	case len(keys) == 1 && in.ID != "" && keys[0] != in.ID:
		return events.NewInvalid(events.CodeBadID, "id", "is another than Idempotency-Key")
	case len(keys) == 1:
		in.ID = keys[0]
	}
	return nil
}

// readComputing reads a body of at most most bytes, and takes a processor to decode it.
func readComputing(w http.ResponseWriter, r *http.Request, most int) ([]byte, error) {
	body, err := service.ReadBody(w, r, limit.Body{Most: most})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), service.AnswerTimeout, service.ErrBusy)
	defer cancel()
	return body, limit.Of(ctx).ComputeOver(ctx, limit.Weight(body))
}
