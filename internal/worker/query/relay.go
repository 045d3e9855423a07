package query

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/events"
	"compactd/internal/worker/observe"
)

// maxForwards is how many questions may wait for the answer of another worker.
const maxForwards = 64

// forward hands a question on to the worker that serves its partition; false leaves it
// to this one. Any worker may receive a question.
func (s *Service) forward(ctx context.Context, e endpoint, r micro.Request) bool {
	id, elsewhere := s.ownedElsewhere(e, r.Data())
	if !elsewhere {
		return false
	}
	select {
	case s.forwards <- struct{}{}:
	default:
		s.answer(r, func() (any, error) { return nil, ErrBusy })
		return true
	}
	data, to := r.Data(), deferredReply{s.config.Read, r.Reply()}
	go func() {
		defer func() { <-s.forwards }()
		s.relay(ctx, id, e, data, to)
	}()
	return true
}

// ownedElsewhere reports whether another worker has to answer, and for which partition.
func (s *Service) ownedElsewhere(e endpoint, request []byte) (partition int, yes bool) {
	if e.partition == nil {
		return 0, false
	}
	id, err := e.partition(request)
	return id, err == nil && s.config.Partitions.At(id) == nil
}

// relay gives back what the worker that serves a partition answers. Where no worker
// serves it, that is the answer.
func (s *Service) relay(ctx context.Context, id int, e endpoint, request []byte, to deferredReply) {
	reply, err := s.requestOwner(ctx, id, e, request)
	if err != nil {
		s.answer(to, func() (any, error) { return nil, err })
		return
	}
	err = to.nc.PublishMsg(&nats.Msg{Subject: to.reply, Data: reply.Data, Header: reply.Header})
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		observe.Call(s.config.Listener.Retrying, observe.Retrying{Partition: -1, Step: "answer", Err: err})
	}
}

// fromOwner is the answer of the worker that serves a partition; a refusal of it is
// the error.
func (s *Service) fromOwner(ctx context.Context, id int, e endpoint, request []byte) ([]byte, error) {
	select {
	case s.forwards <- struct{}{}:
		defer func() { <-s.forwards }()
	default:
		return nil, ErrBusy
	}
	return s.ownerAnswer(ctx, id, e, request)
}

func (s *Service) ownerAnswer(ctx context.Context, id int, e endpoint, request []byte) ([]byte, error) {
	reply, err := s.requestOwner(ctx, id, e, request)
	if err != nil {
		return nil, err
	}
	if reply.Header.Get(micro.ErrorCodeHeader) != "" {
		refused := &events.ServiceError{}
		if err := events.Unmarshal(reply.Data, refused); err != nil {
			return nil, fmt.Errorf("read the answer of another worker: %w", err)
		}
		return nil, refused
	}
	return reply.Data, nil
}

// requestOwner sends a request to the worker that serves a partition.
func (s *Service) requestOwner(ctx context.Context, id int, e endpoint, request []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
	defer cancel()
	reply, err := s.config.Read.RequestMsgWithContext(ctx, &nats.Msg{Subject: events.OwnerSubject(id, e.name), Data: request})
	switch {
	case err == nil:
		return reply, nil
	case ctx.Err() != nil:
		return nil, whyEnded(ctx)
	default:
		return nil, ErrNotServed
	}
}

// Subscribe answers other workers about the sessions of a partition, until quiet. What
// keeps it from that is reported, and the others answer that no worker serves it.
func (s *Service) Subscribe(ctx context.Context, id int) (quiet func()) {
	all := s.endpoints()
	sub, err := s.config.Read.Subscribe(events.OwnerSubject(id, "*"), func(m *nats.Msg) {
		verb := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
		for _, e := range all {
			if e.partition == nil || e.name != verb || !mayReply(m.Reply) {
				continue
			}
			if r := (forwarded{deferredReply{s.config.Read, m.Reply}, m}); !s.takeAwaiting(ctx, e, r, true) {
				s.handle(ctx, e, r)
			}
		}
	})
	if err != nil {
		observe.Call(s.config.Listener.Retrying, observe.Retrying{Partition: id, Step: "answer other workers", Err: err})
		return func() {}
	}
	return func() { _ = sub.Unsubscribe() }
}

// forwarded is a question that came by way of another worker.
type forwarded struct {
	deferredReply
	m *nats.Msg
}

func (p forwarded) Data() []byte           { return p.m.Data }
func (p forwarded) Headers() micro.Headers { return micro.Headers(p.m.Header) }
func (p forwarded) Subject() string        { return p.m.Subject }
func (p forwarded) Reply() string          { return p.m.Reply }

// RespondJSON is part of a [micro.Request]; answers are written by answer alone.
func (p forwarded) RespondJSON(v any, opts ...micro.RespondOpt) error {
	data, err := events.Marshal(v)
	if err != nil {
		return err
	}
	return p.Respond(data, opts...)
}
