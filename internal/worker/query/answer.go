package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/stream"
	"compactd/internal/events"
	"compactd/internal/worker/observe"
)

// answerLater waits for a slot and leaves the work to a goroutine of its own.
func (s *Service) answerLater(ctx context.Context, r micro.Request, f func(context.Context) (any, error)) {
	work, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
	select {
	case s.slots <- struct{}{}:
	case <-work.Done():
		s.answer(r, func() (any, error) { return nil, whyEnded(work) })
		cancel()
		return
	}
	to := deferredReply{s.config.Read, r.Reply()}
	go func() {
		defer func() { <-s.slots }()
		defer cancel()
		s.answer(to, func() (any, error) { return f(work) })
	}()
}

// whyEnded returns why the work on an answer ended early.
func whyEnded(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), ErrBusy) {
		return ErrBusy
	}
	return ErrStopping
}

// orEnded returns err, or why ctx ended where that is the reason.
func orEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return whyEnded(ctx)
	}
	return err
}

// responder is where an answer goes: a [micro.Request], or late.
type responder interface {
	Respond([]byte, ...micro.RespondOpt) error
	Error(code, description string, data []byte, opts ...micro.RespondOpt) error
}

// answer sends what f returns. What the worker did not expect is reported to the
// listener; the caller learns no more than that.
func (s *Service) answer(to responder, f func() (any, error)) {
	data, err := s.payload(f)
	s.respond(to, data, err)
}

// respond sends an answer, or refuses it with an error.
func (s *Service) respond(to responder, data []byte, err error) {
	if err == nil {
		err = to.Respond(data)
	} else {
		e := s.Refuse(err)
		data, _ = events.Marshal(e) // of strings
		err = to.Error(string(e.Code), e.Message, data)
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		observe.Call(s.config.Listener.Retrying, observe.Retrying{Partition: -1, Step: "answer", Err: err})
	}
}

// payload writes an answer. A panic is an error of this answer alone.
func (s *Service) payload(f func() (any, error)) (data []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("answer: panic: %v", r)
		}
	}()
	v, err := f()
	if err != nil {
		return nil, err
	}
	if data, err = events.Marshal(v); err != nil {
		return nil, err
	}
	if most := connect.MaxPayload(s.config.Read); len(data) > most {
		return nil, events.NewInvalid(events.CodeTooLarge, "", fmt.Sprintf("a page with one value of it has %d bytes, more than the %d that the server takes", len(data), most))
	}
	return data, nil
}

// Refuse is refusal, and reports to the listener what was not expected.
func (s *Service) Refuse(err error) *events.ServiceError {
	e := Refusal(err)
	if _, elsewhere := errors.AsType[*events.ServiceError](err); e.Code == events.CodeInternal && !elsewhere {
		observe.Call(s.config.Listener.Retrying, observe.Retrying{Partition: -1, Step: "answer", Err: err})
	}
	return e
}

// Refusal is what the caller receives about an error.
func Refusal(err error) *events.ServiceError {
	e := &events.ServiceError{V: events.Version, Code: events.CodeInternal}
	bad, invalid := errors.AsType[*events.Invalid](err)
	_, gone := errors.AsType[*stream.GoneError](err)
	if refused, ok := errors.AsType[*events.ServiceError](err); ok {
		return refused // by another worker
	}
	switch {
	case errors.Is(err, errOtherTenant):
		e.Code, e.Message, e.Hint = events.CodeForbidden, err.Error(), "Name the tenant of the subject in the payload too."
	case invalid:
		e.Code, e.Message, e.Hint = bad.Code(), bad.Error(), bad.Hint()
	case errors.Is(err, ErrNotServed), errors.Is(err, ErrBusy), errors.Is(err, ErrStopping):
		e.Code, e.Message, e.Hint = events.CodeUnavailable, err.Error(), "Ask again in a moment."
	case gone:
		e.Code, e.Message, e.Hint = events.CodeGone, "a text of this session is no longer in the log", "Send the whole history again with replaces_from 1."
	default:
		e.Message, e.Hint = "a defect of the worker kept it from answering", "See the log of the worker, and report it."
	}
	return e
}

// deferredReply answers after the handler has returned, when the request itself must no
// longer be touched.
type deferredReply struct {
	nc    *nats.Conn
	reply string
}

func (l deferredReply) Respond(data []byte, _ ...micro.RespondOpt) error {
	return l.nc.Publish(l.reply, data)
}

func (l deferredReply) Error(code, description string, data []byte, _ ...micro.RespondOpt) error {
	return l.nc.PublishMsg(&nats.Msg{Subject: l.reply, Data: data, Header: nats.Header{
		micro.ErrorHeader: {description}, micro.ErrorCodeHeader: {code},
	}})
}

// Reply answers a request to an endpoint, by way of the worker that serves the
// session if it is another one. The error is one for refusal.
func (s *Service) Reply(ctx context.Context, endpoint string, request []byte) ([]byte, error) {
	for _, e := range s.endpoints() {
		if e.name != endpoint {
			continue
		}
		if w, ok := e.waitsFor(request); ok {
			return s.replyAwaiting(ctx, e, request, w, false)
		}
		ctx, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
		defer cancel()
		if id, elsewhere := s.ownedElsewhere(e, request); elsewhere {
			return s.fromOwner(ctx, id, e, request)
		}
		if e.slow {
			select {
			case s.slots <- struct{}{}:
				defer func() { <-s.slots }()
			case <-ctx.Done():
				return nil, whyEnded(ctx)
			}
		}
		return s.payload(func() (any, error) { return e.answer(ctx, request) })
	}
	return nil, errors.New("reply: there is no endpoint " + endpoint)
}
