package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker/connect"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/trace"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/partition"
)

// A worker fetches a request that is larger than max_payload part by part: one part is in flight at
// a time, and few are in memory.
const (
	headerParts = "Compactd-Parts" // the subject that answers with parts, by index
	headerSize  = "Compactd-Size"  // of the whole, in bytes
	partMargin  = 4 << 10          // of a message, for headers
	partTime    = 2 * time.Second  // for one part
)

// The tenant and session of a request, so that its memory counts for them before it is decoded.
// Only workers may publish on the subjects where these headers are read; a request that names
// another tenant than its header is refused.
const (
	headerTenant  = "Compactd-Tenant"
	headerSession = "Compactd-Session"
)

// forwarded is the account of a request of another worker, without a tenant if no header has one.
func forwarded(h nats.Header) limit.Account {
	a := events.Address{Tenant: h.Get(headerTenant), Session: h.Get(headerSession)}
	if a.Validate() != nil {
		return limit.Account{}
	}
	return limit.Account{Tenant: a.Tenant, Part: a.Session}
}

// ownerAnswer is the answer of the worker that serves the partition of a request. Its refusal is
// the error: wrong_partition if the session has moved. It is an error too if no worker serves the
// partition.
func (s *Service) ownerAnswer(ctx context.Context, o *Operation, c *call, request []byte) (any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit(), ErrBusy)
	defer cancel()
	limit.Of(ctx).Rest() // the work is that worker's
	m := &nats.Msg{
		Subject: events.OwnerSubject(c.partition, o.Name), Data: request,
		Header: nats.Header{headerTenant: {c.tenant}, headerSession: {c.session}},
	}
	trace.Set(ctx, m.Header)
	if len(request) > connect.MaxPayload(s.config.Read)-partMargin {
		stop, err := s.offer(m)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	reply, err := s.config.Read.RequestMsgWithContext(ctx, m)
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, whyEnded(ctx)
	case err != nil:
		return nil, ErrNotServed
	case reply.Header.Get(micro.ErrorCodeHeader) == "":
		return codec.Raw(reply.Data), nil
	}
	refused := &events.ServiceError{}
	if err := codec.Unmarshal(reply.Data, refused); err != nil {
		return nil, fmt.Errorf("read the answer of another worker: %w", err)
	}
	return nil, refused
}

// counted counts a large answer of another worker as memory until it has left. It waits for that memory once the answer
// is there: a recall passes through many workers, and a share that it held meanwhile could be the one that it waits for.
func counted(ctx context.Context, o *Operation, answer any, err error) (any, error) {
	data, _ := answer.(codec.Raw)
	if err != nil || !o.slow || len(data) <= limit.Large {
		return answer, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
	defer cancel()
	if err := limit.Of(ctx).Remember(limited, int64(len(data))); err != nil {
		return nil, orEnded(limited, err)
	}
	return answer, nil
}

// following calls answer, and calls it again if the session has moved to another partition since
// the log grew: at most once for each growth. A request of another worker is refused instead.
func (s *Service) following(ctx context.Context, c *call, alone bool, answer func() (any, error)) (any, error) {
	a := events.Address{Tenant: c.tenant, Session: c.session}
	for {
		out, err := answer()
		code := events.Code("")
		if err != nil && c.session != "" {
			code = Refusal(err).Code
		}
		switch moved := s.config.Partitions.Of(a) != c.partition; {
		case code != events.CodeWrongPartition && (code != events.CodeUnavailable || !moved):
			return out, err
		case alone:
			return nil, partition.ErrMoved
		case !moved:
			if err := s.refresh(ctx, c.partition, a); err != nil {
				return nil, err
			}
		}
		c.partition = s.config.Partitions.Of(a)
	}
}

// refresh reads the table of partitions again. It returns an error if the session is still in the same partition:
// the split is not stored yet.
func (s *Service) refresh(ctx context.Context, id int, a events.Address) error {
	ctx, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
	defer cancel()
	limit.Of(ctx).Rest()
	err := s.config.Partitions.Refresh(ctx, id, a)
	if err != nil && ctx.Err() != nil {
		return whyEnded(ctx)
	}
	if err != nil {
		s.config.Listener.Retry(id, "read partitions", err)
	}
	if err != nil || s.config.Partitions.Of(a) == id {
		return ErrNotServed
	}
	return nil
}

// offer replaces the data of a request by the subject of its parts, and answers there until stop.
func (s *Service) offer(m *nats.Msg) (stop func(), err error) {
	nc, whole := s.config.Read, m.Data
	size := connect.MaxPayload(nc) - partMargin
	place := nc.NewInbox()
	sub, err := nc.Subscribe(place, func(q *nats.Msg) {
		i, err := strconv.Atoi(string(q.Data))
		if err != nil || i < 0 || i > len(whole)/size {
			return
		}
		_ = q.Respond(whole[i*size : min((i+1)*size, len(whole))]) // requested again when it is missed
	})
	if err != nil {
		return nil, fmt.Errorf("offer a request: %w", err)
	}
	m.Data = nil
	m.Header.Set(headerParts, place)
	m.Header.Set(headerSize, strconv.Itoa(len(whole)))
	return func() { _ = sub.Unsubscribe() }, nil
}

// errParts: another worker offered a request larger than the limit, or without parts.
var errParts = errors.New("another worker offered a request of a wrong size")

// offeredSize is the size in bytes of a request that another worker offers.
func offeredSize(offered nats.Header) (int, error) {
	size, err := strconv.Atoi(offered.Get(headerSize))
	if err != nil || size <= 0 || size > events.MaxSyncBytes+partMargin || !mayReply(offered.Get(headerParts)) {
		return 0, errParts
	}
	return size, nil
}

// fetch returns the request that another worker offers.
func (s *Service) fetch(ctx context.Context, offered nats.Header, size int) ([]byte, error) {
	place := offered.Get(headerParts)
	out := make([]byte, 0, size)
	for i := 0; len(out) < size; {
		limited, cancel := context.WithTimeout(ctx, partTime)
		part, err := s.config.Read.RequestWithContext(limited, place, []byte(strconv.Itoa(i)))
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, whyEnded(ctx)
		case errors.Is(err, nats.ErrNoResponders): // the caller has gone
			return nil, ErrBusy
		case errors.Is(err, context.DeadlineExceeded): // it is lost
			continue
		case err != nil:
			return nil, ErrBusy
		case len(part.Data) == 0 || len(out)+len(part.Data) > size:
			return nil, errParts
		}
		out = append(out, part.Data...)
		i++
	}
	return out, nil
}
