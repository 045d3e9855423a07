package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/memory"
)

// ReadSubject calls fn for the messages of a stream that match filter from a sequence on, in
// order, and returns at the end. It reads message by message from the leader. For the few
// messages of a session that is faster than a consumer, which a server keeps for minutes and has
// at most a thousand of. An error of fn ends the read and is returned, unless it is [ErrEnd].
// ReadSubject skips messages of OUTCOMES that are not an [Outcome]. [topology.ErrNoStreams]: no worker has
// ever run there.
func ReadSubject(ctx context.Context, nc *nats.Conn, stream, filter string, from uint64, fn func(LogMessage) error) error {
	for {
		m, ours, err := one(ctx, nc, stream, jsapi.GetRequest{Seq: max(from, 1), NextFor: filter})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s %s: %w", stream, filter, err)
		}
		if from = m.Seq + 1; !ours {
			continue
		}
		if err := fn(m); errors.Is(err, ErrEnd) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// ReadSubjects is [ReadSubject] for several filters, one after the other.
func ReadSubjects(ctx context.Context, nc *nats.Conn, stream string, filters []string, from uint64, fn func(LogMessage) error) error {
	ended := false
	for _, filter := range filters {
		err := ReadSubject(ctx, nc, stream, filter, from, func(m LogMessage) error {
			err := fn(m)
			ended = errors.Is(err, ErrEnd)
			return err
		})
		if ended || err != nil {
			return err
		}
	}
	return nil
}

// ErrEnd ends a read without an error.
var ErrEnd = errors.New("end of the read")

// LastOf returns the newest message that matches one of the filters, or an error that is
// [jetstream.ErrMsgNotFound]. In OUTCOMES it returns the newest [Outcome]: if the newest message is not
// one, it reads all messages of the filter.
func LastOf(ctx context.Context, nc *nats.Conn, stream string, filters ...string) (newest LogMessage, err error) {
	for _, filter := range filters {
		m, err := lastOf(ctx, nc, stream, filter)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return LogMessage{}, fmt.Errorf("read last of %s %s: %w", stream, filter, err)
		}
		if m.Seq > newest.Seq {
			newest = m
		}
	}
	if newest.Seq == 0 {
		return newest, fmt.Errorf("read last of %s %s: %w", stream, strings.Join(filters, ", "), jetstream.ErrMsgNotFound)
	}
	return newest, nil
}

func lastOf(ctx context.Context, nc *nats.Conn, stream, filter string) (LogMessage, error) {
	m, ours, err := one(ctx, nc, stream, jsapi.GetRequest{LastFor: filter})
	if err == nil && !ours {
		m = LogMessage{}
		err = ReadSubject(ctx, nc, stream, filter, 1, func(found LogMessage) error {
			m = found
			return nil
		})
		if err == nil && m.Seq == 0 {
			err = jetstream.ErrMsgNotFound
		}
	}
	return m, err
}

// one reads a message from the leader, and retries while there is no leader. ours is false for a message
// of OUTCOMES that is not an [Outcome].
func one(ctx context.Context, nc *nats.Conn, stream string, req jsapi.GetRequest) (_ LogMessage, ours bool, _ error) {
	memory.Relieve()
	req.NoHeader = stream != topology.OutcomesStream
	m, err := jsapi.AwaitFromLeader(ctx, nc, stream, req)
	if jsapi.HasCode(err, jsapi.CodeStreamNotFound) {
		return LogMessage{}, false, topology.ErrNoStreams
	}
	if err != nil {
		return LogMessage{}, false, err
	}
	return logMessage(m), req.NoHeader || Outcome(m.Subject, m.Headers()), nil
}
