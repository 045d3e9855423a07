package request

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker/retry"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/trace"
)

// requestTimeout is longer than any answer of a worker takes.
const requestTimeout = 15 * time.Second

// ErrNoWorker: no worker answers requests.
var ErrNoWorker = errors.New("no worker is running")

// Send sends a request to the workers and reads the answer into out.
func Send(ctx context.Context, nc *nats.Conn, subject string, in, out any) error {
	return SendWithin(ctx, nc, requestTimeout, subject, in, out)
}

// SendOf is Send for a request about a tenant. An operator sends it on subject itself, which is audited; a
// user of the tenant sends it on the tenant's subject.
func SendOf(ctx context.Context, nc *nats.Conn, subject, tenant string, in, out any) error {
	at, err := SubjectOf(nc, subject, tenant)
	if err != nil {
		return err
	}
	return Send(ctx, nc, at, in, out)
}

// answerTimeout limits an answer, beyond the wait that its request names.
const answerTimeout = time.Second

// pauses are the pauses between two tries of [SendUntil].
var pauses = retry.Pauses{First: 20 * time.Millisecond, Last: 100 * time.Millisecond}

// SendUntil is SendOf for a request that waits in its worker, for wait at most. It sends it again, as the worker may
// crash or not be there yet, until ctx ends; again may be nil, and false for an error after which it is not sent again.
func SendUntil(ctx context.Context, nc *nats.Conn, subject, tenant string, wait time.Duration, in, out any, again func(error) bool) error {
	return pauses.Do(ctx, nil, func() error {
		at, err := SubjectOf(nc, subject, tenant)
		if err == nil {
			err = SendWithin(ctx, nc, wait+answerTimeout, at, in, out)
		}
		return retry.When(again == nil || again(err), err)
	})
}

// SubjectOf returns the subject on which this user sends requests about a tenant. A user that may see the fleet
// is an operator.
func SubjectOf(nc *nats.Conn, subject, tenant string) (string, error) {
	ofTenant, err := Denied(nc, events.SubjectFleet)
	if err != nil || !ofTenant {
		return subject, err
	}
	return events.OfTenant(subject, tenant), nil
}

// SendWithin is Send for an answer that may take longer, up to timeout.
func SendWithin(ctx context.Context, nc *nats.Conn, timeout time.Duration, subject string, in, out any) error {
	data, err := codec.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	msg := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	trace.Set(ctx, msg.Header)
	m, err := nc.RequestMsgWithContext(ctx, msg)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("request %s: %w", subject, ErrNoWorker)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("request %s: no answer within %s; is the worker connected?", subject, timeout)
	case err != nil:
		return fmt.Errorf("request %s: %w", subject, err)
	}
	if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
		e := &events.ServiceError{}
		if codec.Unmarshal(m.Data, e) != nil || e.Code == "" {
			e = &events.ServiceError{Code: events.Code(code), Message: m.Header.Get(micro.ErrorHeader)}
		}
		return fmt.Errorf("request %s: %w", subject, e)
	}
	if err := codec.Unmarshal(m.Data, out); err != nil {
		return fmt.Errorf("request %s: read the answer: %w", subject, err)
	}
	return nil
}

// Denied reports whether the server forbids this user a request. It publishes the request without a reply
// subject, which workers ignore; the server sends a refusal before it answers the flush. The connection's error
// handler receives the refusal too.
func Denied(nc *nats.Conn, subject string) (bool, error) {
	if err := nc.Publish(subject, nil); err != nil {
		return false, err
	}
	if err := nc.Flush(); err != nil {
		return false, fmt.Errorf("check the permissions of this user: %w", err)
	}
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`), nil
}

// Attach requests the content of files for the next call of a session.
func Attach(ctx context.Context, nc *nats.Conn, in events.AttachRequest) (*events.AttachResponse, error) {
	out := &events.AttachResponse{}
	subject, err := SubjectOf(nc, events.SubjectAttach, in.Tenant)
	if err == nil {
		err = SendWithin(ctx, nc, in.SummaryWait()+requestTimeout, subject, in, out)
	}
	return out, err
}

// maxTries limits the attempts to read the pages of a history when turns arrive in between.
const maxTries = 5

// ErrMoving: the pages of an answer did not belong together.
var ErrMoving = errors.New("the session changes faster than its pages can be read; try again when it is idle")

// History joins all pages of a session's history. Pages of the result is the number of joined pages.
func History(ctx context.Context, nc *nats.Conn, in events.ContextRequest) (*events.ContextResponse, error) {
	for range maxTries {
		whole, err := join(ctx, nc, in)
		if err != nil || whole != nil {
			return whole, err
		}
	}
	return nil, ErrMoving
}

// join reads the pages once. It returns nil if they do not belong together.
func join(ctx context.Context, nc *nats.Conn, in events.ContextRequest) (*events.ContextResponse, error) {
	subject, err := SubjectOf(nc, events.SubjectContext, in.Tenant)
	if err != nil {
		return nil, err
	}
	in.Page = 1
	whole := &events.ContextResponse{}
	if err := Send(ctx, nc, subject, in, whole); err != nil {
		return nil, err
	}
	for in.Page = 2; in.Page <= whole.Pages; in.Page++ {
		var next events.ContextResponse
		err := Send(ctx, nc, subject, in, &next)
		if Refused(err, events.CodeOutOfRange) { // the history became shorter
			return nil, nil //nolint:nilnil // nil means: begin again
		}
		if err != nil {
			return nil, err
		}
		if next.Generation != whole.Generation || next.Through != whole.Through || next.Pages != whole.Pages {
			return nil, nil //nolint:nilnil // as above
		}
		whole.Messages = append(whole.Messages, next.Messages...)
		if next.System != nil {
			whole.System = next.System
		}
		if next.Tools != nil {
			whole.Tools = next.Tools
		}
	}
	return whole, nil
}

// Refused reports whether a worker has refused a request with a code.
func Refused(err error, c events.Code) bool {
	e, ok := errors.AsType[*events.ServiceError](err)
	return ok && e.Code == c
}
