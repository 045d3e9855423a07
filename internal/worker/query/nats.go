package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/events"
)

// Run answers over NATS until ctx ends, and returns when the last answer is given, or until does.
func (s *Service) Run(ctx, until context.Context) error {
	svc, err := micro.AddService(s.config.Read, micro.Config{
		Name: events.ServiceName, Version: strconv.Itoa(events.Version) + ".0.0", // of the contract: a program's need not be semantic
		Description: "answers questions about the sessions of compactd",
		Metadata:    map[string]string{"version": s.config.Version, "owner": s.config.Owner},
	})
	if err != nil {
		return fmt.Errorf("start service: %w", err)
	}
	defer func() { _ = svc.Stop() }() // fails only on a closed connection, where nothing is left to stop
	for i := range s.operations {
		if err := s.add(ctx, svc, &s.operations[i]); err != nil {
			return fmt.Errorf("start service: endpoint %s: %w", s.operations[i].Name, err)
		}
	}
	if err := s.config.Read.FlushTimeout(AnswerTimeout); err != nil && ctx.Err() == nil {
		return fmt.Errorf("start service: %w", err)
	}
	s.config.Subscribed() // the server sends questions here from now on
	<-ctx.Done()
	s.end()
	_ = svc.Stop()
	if nc := s.config.Read; nc.IsConnected() {
		_ = nc.FlushTimeout(time.Second) // the server sends no request here any more; if not, the caller waits in vain
	}
	for range maxAnswers { // from here on none begins
		if s.slots.await(until) != nil {
			break
		}
	}
	return nil
}

// add answers an operation on its subject, and, if it is about a session, on those of tenants
// too, which a server's permissions distinguish.
func (s *Service) add(ctx context.Context, svc micro.Service, o *Operation) error {
	meta := micro.WithEndpointMetadata(o.describe())
	answer := func(r micro.Request) { s.receive(ctx, o, r.Reply(), r.Data(), false) }
	err := svc.AddEndpoint(o.Name, micro.HandlerFunc(answer), micro.WithEndpointSubject(o.Subject()), meta)
	if err != nil || o.partition == nil {
		return err
	}
	ofTenant := func(r micro.Request) {
		if err := checkTenant(r); err != nil {
			s.respond(r.Reply(), nil, err)
			return
		}
		answer(r)
	}
	return svc.AddEndpoint(o.Name+"-of-tenant", micro.HandlerFunc(ofTenant), micro.WithEndpointSubject(events.OfTenant(o.Subject(), "*")), meta)
}

// Subscribe answers other workers about the sessions of a partition, until stop. What
// keeps it from that is reported, and the others answer that no worker serves it.
func (s *Service) Subscribe(ctx context.Context, id int) (stop func()) {
	sub, err := s.config.Read.Subscribe(events.OwnerSubject(id, "*"), func(m *nats.Msg) {
		o := s.find(lastToken(m.Subject))
		switch {
		case o == nil || o.partition == nil || !mayReply(m.Reply):
		case m.Header.Get(headerParts) == "":
			s.receive(ctx, o, m.Reply, m.Data, true)
		case !s.fetches.take():
			s.respond(m.Reply, nil, ErrBusy)
		default:
			go func() {
				defer s.fetches.release()
				request, err := s.fetch(ctx, m.Header)
				if err != nil {
					s.respond(m.Reply, nil, err)
					return
				}
				s.receive(ctx, o, m.Reply, request, true)
			}()
		}
	})
	if err != nil {
		s.retrying(id, "answer other workers", err)
		return func() {}
	}
	return func() { _ = sub.Unsubscribe() }
}

// receive answers a request: at once, or from a goroutine of its own, so that others of its
// subscription need not wait.
func (s *Service) receive(ctx context.Context, o *Operation, reply string, request []byte, alone bool) {
	if !mayReply(reply) {
		return
	}
	run, quick, err := s.admit(ctx, o, request, alone)
	answer := func() {
		data, err := run()
		s.respond(reply, data, err)
	}
	switch {
	case err != nil:
		s.respond(reply, nil, err)
	case quick:
		answer()
	default:
		go answer() // it has a place
	}
}

// respond sends an answer, or refuses it with an error.
func (s *Service) respond(reply string, data []byte, err error) {
	if !mayReply(reply) {
		return
	}
	m := &nats.Msg{Subject: reply, Data: data}
	if err != nil {
		e := s.refuse(err)
		m.Data, _ = events.Marshal(e) // of strings
		m.Header = nats.Header{micro.ErrorHeader: {e.Message}, micro.ErrorCodeHeader: {string(e.Code)}}
	}
	if err := s.config.Read.PublishMsg(m); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		s.retrying(-1, "answer", err)
	}
}

// mayReply reports whether answers may go to a subject: a request must not make
// the worker publish where others may not.
func mayReply(subject string) bool {
	root, _, _ := strings.Cut(subject, ".")
	switch root {
	case "", "session", "log", "out", events.ServiceName:
		return false
	}
	return root[0] != '$'
}

// checkTenant refuses a request whose payload names another tenant than the
// last token of its subject.
func checkTenant(r micro.Request) error {
	requested, err := events.RequestTenant(r.Data())
	if err == nil && requested != lastToken(r.Subject()) {
		err = errOtherTenant
	}
	return err
}

func lastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }
