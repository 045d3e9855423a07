package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// codeStreamNotFound of the server: stream not found.
const codeStreamNotFound jetstream.ErrorCode = 10059

// ReadSubject calls fn for what filter selects of a stream from a sequence on, in
// order, and returns at its end. It reads one message after the other from the leader:
// for the few of one session that is quicker than a consumer, of which a server
// keeps each for minutes and has a thousand. An error of fn ends the read and is
// returned. [ErrNoStreams]: no worker has ever run there.
func ReadSubject(ctx context.Context, nc *nats.Conn, stream, filter string, from uint64, fn func(LogMessage) error) error {
	for {
		m, err := one(ctx, nc, stream, getRequest{Seq: max(from, 1), NextFor: filter})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s %s: %w", stream, filter, err)
		}
		if err := fn(m); err != nil {
			return err
		}
		from = m.Seq + 1
	}
}

// LastOf returns the newest message that filter selects, or an error that is
// [jetstream.ErrMsgNotFound].
func LastOf(ctx context.Context, nc *nats.Conn, stream, filter string) (LogMessage, error) {
	m, err := one(ctx, nc, stream, getRequest{LastFor: filter})
	if err != nil {
		return LogMessage{}, fmt.Errorf("read last of %s %s: %w", stream, filter, err)
	}
	return m, nil
}

// one reads a message from the leader, and tries again while there is none.
func one(ctx context.Context, nc *nats.Conn, stream string, req getRequest) (out LogMessage, err error) {
	err = retry(ctx, nil, func() error {
		req.NoHeader = true
		m, err := getFromLeader(ctx, nc, stream, req)
		switch {
		case hasCode(err, codeStreamNotFound):
			return permanent(ErrNoStreams)
		case err != nil:
			return transient(err)
		}
		out = LogMessage{Seq: m.Seq, Subject: m.Subject, Time: m.Time, Data: m.Data}
		return nil
	})
	return out, err
}

// MayRead reports whether this connection's user may read the streams at all: one of
// a tenant that must not see others may not, and queries a worker instead.
func MayRead(ctx context.Context, nc *nats.Conn) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	subject := apiGet + OutcomesStream
	sub, err := nc.SubscribeSync(nc.NewRespInbox())
	if err != nil {
		return false, fmt.Errorf("check the permission to read: %w", err)
	}
	defer sub.Unsubscribe()
	before := nc.LastError()
	if err := nc.PublishRequest(subject, sub.Subject, []byte(`{"seq":1}`)); err != nil {
		return false, fmt.Errorf("check the permission to read: %w", err)
	}
	if err := nc.FlushWithContext(ctx); err != nil { // a refusal comes before the answer to this
		return false, fmt.Errorf("check the permission to read: %w", err)
	}
	if err := nc.LastError(); err != before && errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), subject) { //nolint:errorlint // is it another one than before?
		return false, nil
	}
	_, err = sub.NextMsgWithContext(ctx)
	if errors.Is(err, nats.ErrNoResponders) {
		return false, nil // an account without JetStream
	}
	return err == nil, err
}
