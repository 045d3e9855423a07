package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker/retry"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/tokens"
	"compactd/internal/trace"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/partition"
)

// Run answers over NATS until ctx ends, and returns after the last answer, or at the end of until.
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
		if s.operations[i].HTTPOnly {
			continue
		}
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
		_ = nc.FlushTimeout(time.Second) // after it the server sends no request here; without it a caller may wait in vain
	}
	_ = retry.Every(stopPause).Until(until, func() (bool, error) { return s.running.Load() == 0, nil }) // waiting requests end by themselves
	return nil
}

// stopPause is the pause between two checks for answers under way.
const stopPause = 5 * time.Millisecond

// add answers an operation on its subject. If the operation is about a session, it also answers on
// subjects with the tenant, which permissions can distinguish.
func (s *Service) add(ctx context.Context, svc micro.Service, o *Operation) error {
	meta := micro.WithEndpointMetadata(o.describe())
	answer := func(r micro.Request) {
		s.receive(ctx, o, message{reply: r.Reply(), data: r.Data(), header: nats.Header(r.Headers())})
	}
	err := svc.AddEndpoint(o.Name, micro.HandlerFunc(answer), micro.WithEndpointSubject(o.Subject()), meta)
	if err != nil || o.global || o.Operators {
		return err
	}
	ofTenant := func(r micro.Request) {
		s.receive(ctx, o, message{reply: r.Reply(), data: r.Data(), header: nats.Header(r.Headers()), of: limit.Account{Tenant: lastToken(r.Subject())}})
	}
	return svc.AddEndpoint(o.Name+"-of-tenant", micro.HandlerFunc(ofTenant), micro.WithEndpointSubject(events.OfTenant(o.Subject(), "*")), meta)
}

// Subscribe answers other workers about the sessions of a partition, until stop. If that fails it
// reports the error; other workers then answer that no worker serves the partition.
func (s *Service) Subscribe(ctx context.Context, id int) (stop func()) {
	sub, err := s.config.Read.Subscribe(events.OwnerSubject(id, "*"), func(m *nats.Msg) {
		o := s.find(lastToken(m.Subject))
		switch {
		case o == nil || o.global || !mayReply(m.Reply):
		case m.Header.Get(headerParts) == "":
			s.receive(ctx, o, message{reply: m.Reply, data: m.Data, header: m.Header, of: forwarded(m.Header), alone: true, partition: id})
		default:
			go s.receiveParts(ctx, o, m, id)
		}
	})
	if err != nil {
		s.config.Listener.Retry(id, "answer other workers", err)
		return func() {}
	}
	return func() { _ = sub.Unsubscribe() }
}

// message is a request over NATS.
type message struct {
	reply  string
	data   []byte
	header nats.Header
	of     limit.Account // of its subject, or as another worker states; no tenant for none

	alone     bool // it comes from another worker
	partition int  // that it is sent to
}

// receive answers a request in a goroutine of its own, so that later requests of the subscription
// need not wait.
func (s *Service) receive(ctx context.Context, o *Operation, m message) {
	if !mayReply(m.reply) {
		return
	}
	op := s.limiter.Begin(m.of)
	ctx = op.With(traced(ctx, m.header))
	if !op.TryRemember(int64(len(m.data)) * limit.PerByte) {
		s.respond(m.reply, nil, ErrBusy)
		return
	}
	go s.reply(ctx, op, o, m)
}

// traced puts the trace of a message into a context.
func traced(ctx context.Context, h nats.Header) context.Context {
	return trace.With(ctx, events.ReadTrace(h[events.HeaderTrace]))
}

// decodeFor decodes a request, which then counts for its tenant and session. A request whose
// subject, or whose header of another worker, has a tenant must name the same tenant. Another
// worker may send a request to the partition that the session had before the log grew.
func (s *Service) decodeFor(ctx context.Context, o *Operation, m message) (*call, error) {
	c, err := s.decode(ctx, o, m.data)
	tenant := ""
	switch {
	case err == nil:
		tenant = c.tenant
	case m.of.Tenant == "":
		return nil, err
	default: // the error shows nothing to another tenant
		var unread error
		if tenant, unread = events.RequestTenant(m.data); unread != nil {
			return nil, err
		}
	}
	if m.of.Tenant != "" && tenant != m.of.Tenant {
		return nil, errOtherTenant
	}
	if err != nil {
		return nil, err
	}
	if m.alone && c.partition != anyWorker && c.partition != m.partition {
		return nil, partition.ErrMoved
	}
	limit.Of(ctx).For(limit.Account{Tenant: c.tenant, Part: c.session})
	return c, nil
}

// reply answers a request, and ends its operation.
func (s *Service) reply(ctx context.Context, op *limit.Operation, o *Operation, m message) {
	defer op.End()
	var data []byte
	c, err := s.decodeFor(ctx, o, m)
	if m.of.Tenant == "" && !m.alone { // a subject that is for operators, where permissions keep tenants apart
		ctx = context.WithValue(ctx, callerKey{}, caller{Entry: tokens.Operator("nats")})
	}
	if err == nil && !m.alone { // the worker that sent it has checked that
		err = s.allowed(ctx, c)
	}
	if err == nil {
		err = s.recorded(ctx, o, c)
	}
	if err == nil {
		var out any
		if out, err = s.serve(ctx, o, c, m.alone); err == nil {
			data, err = s.encode(ctx, out)
		}
	}
	s.respond(m.reply, data, err)
}

// receiveParts answers a request that another worker offers in parts.
func (s *Service) receiveParts(ctx context.Context, o *Operation, m *nats.Msg, id int) {
	limited, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
	defer cancel()
	of := forwarded(m.Header)
	op := s.limiter.Begin(of)
	size, release, err := 0, func() {}, error(nil)
	if size, err = offeredSize(m.Header); err == nil {
		release, err = op.Hold(limited, limit.Fetches)
	}
	if err == nil {
		defer release()
		err = op.Remember(limited, int64(size)*limit.PerByte)
	}
	var request []byte
	if err == nil {
		request, err = s.fetch(limited, m.Header, size)
	}
	if err != nil {
		op.End()
		s.respond(m.Reply, nil, orEnded(limited, err))
		return
	}
	s.reply(op.With(traced(ctx, m.Header)), op, o, message{reply: m.Reply, data: request, of: of, alone: true, partition: id})
}

// respond sends an answer, or refuses it with an error.
func (s *Service) respond(reply string, data []byte, err error) {
	if !mayReply(reply) {
		return
	}
	m := &nats.Msg{Subject: reply, Data: data}
	if err != nil {
		e := s.refuse(err)
		m.Data, _ = codec.Marshal(e) // of strings
		m.Header = nats.Header{micro.ErrorHeader: {e.Message}, micro.ErrorCodeHeader: {string(e.Code)}}
	}
	if err := s.config.Read.PublishMsg(m); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		s.config.Listener.Retry(-1, "answer", err)
	}
}

// mayReply reports whether answers may go to a subject: the sender of a request could not publish
// on every subject that the worker can.
func mayReply(subject string) bool {
	root, _, _ := strings.Cut(subject, ".")
	switch root {
	case "", "session", "log", "out", "audit", events.ServiceName:
		return false
	}
	return root[0] != '$'
}

func lastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }
