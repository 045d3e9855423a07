package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
)

// ReadSubject calls fn for what filter selects of a stream from a sequence on, in
// order, and returns at its end. It reads one message after the other from the leader:
// for the few of one session that is quicker than a consumer, of which a server
// keeps each for minutes and has a thousand. An error of fn ends the read and is
// returned. [topology.ErrNoStreams]: no worker has ever run there.
func ReadSubject(ctx context.Context, nc *nats.Conn, stream, filter string, from uint64, fn func(LogMessage) error) error {
	for {
		m, err := one(ctx, nc, stream, jsapi.GetRequest{Seq: max(from, 1), NextFor: filter})
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
	m, err := one(ctx, nc, stream, jsapi.GetRequest{LastFor: filter})
	if err != nil {
		return LogMessage{}, fmt.Errorf("read last of %s %s: %w", stream, filter, err)
	}
	return m, nil
}

// one reads a message from the leader, and tries again while there is none.
func one(ctx context.Context, nc *nats.Conn, stream string, req jsapi.GetRequest) (LogMessage, error) {
	req.NoHeader = true
	m, err := jsapi.AwaitFromLeader(ctx, nc, stream, req)
	if jsapi.HasCode(err, jsapi.CodeStreamNotFound) {
		return LogMessage{}, topology.ErrNoStreams
	}
	if err != nil {
		return LogMessage{}, err
	}
	return logMessage(m), nil
}
