package worker

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/events"
)

// maxRelayed is how many questions may wait for the answer of another worker.
const maxRelayed = 64

// pass hands a question on to the worker that serves its partition; false leaves it
// to this one. A question comes to any worker.
func (s *service) pass(ctx context.Context, e endpoint, r micro.Request) bool {
	id, elsewhere := s.elsewhere(e, r.Data())
	if !elsewhere {
		return false
	}
	select {
	case s.relayed <- struct{}{}:
	default:
		s.answer(r, func() (any, error) { return nil, errBusy })
		return true
	}
	m := &nats.Msg{Subject: events.OwnerSubject(id, e.name), Data: r.Data()}
	to := late{s.w.config.Read, r.Reply()}
	go func() {
		defer func() { <-s.relayed }()
		s.ask(ctx, m, to)
	}()
	return true
}

// elsewhere reports whether another worker has to answer, and for which partition.
func (s *service) elsewhere(e endpoint, request []byte) (partition int, yes bool) {
	if e.partition == nil {
		return 0, false
	}
	id, err := e.partition(request)
	return id, err == nil && s.w.served[id].Load() == nil
}

// ask asks the worker that serves a partition, and gives back what it answers. Where
// nobody serves it, that is the answer.
func (s *service) ask(ctx context.Context, m *nats.Msg, to late) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errBusy)
	defer cancel()
	reply, err := to.nc.RequestMsgWithContext(ctx, m)
	switch {
	case err == nil:
		err = to.nc.PublishMsg(&nats.Msg{Subject: to.reply, Data: reply.Data, Header: reply.Header})
		if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			call(s.w.config.Listener.Interrupted, Interrupted{-1, "answer", err})
		}
	case ctx.Err() != nil:
		s.answer(to, func() (any, error) { return nil, whyEnded(ctx) })
	default:
		s.answer(to, func() (any, error) { return nil, errNotServed })
	}
}

// listen answers other workers about the sessions of a partition, until quiet. What
// keeps it from that is told, and the others answer that nobody serves it.
func (s *service) listen(ctx context.Context, id int) (quiet func()) {
	all := s.endpoints()
	sub, err := s.w.config.Read.Subscribe(events.OwnerSubject(id, "*"), func(m *nats.Msg) {
		verb := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
		for _, e := range all {
			if e.partition != nil && e.name == verb && mayReply(m.Reply) {
				s.handle(ctx, e, passed{late{s.w.config.Read, m.Reply}, m})
			}
		}
	})
	if err != nil {
		call(s.w.config.Listener.Interrupted, Interrupted{id, "answer other workers", err})
		return func() {}
	}
	return func() { _ = sub.Unsubscribe() }
}

// passed is a question that came by way of another worker.
type passed struct {
	late
	m *nats.Msg
}

func (p passed) Data() []byte           { return p.m.Data }
func (p passed) Headers() micro.Headers { return micro.Headers(p.m.Header) }
func (p passed) Subject() string        { return p.m.Subject }
func (p passed) Reply() string          { return p.m.Reply }

// RespondJSON is part of a [micro.Request]; answers are written by answer alone.
func (p passed) RespondJSON(v any, opts ...micro.RespondOpt) error {
	data, err := events.Marshal(v)
	if err != nil {
		return err
	}
	return p.Respond(data, opts...)
}
