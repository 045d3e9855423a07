package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/events/partitions"
)

// Streams describes the two streams.
type Streams struct {
	// Partitions of the existing log, regardless of the config.
	Partitions partitions.Table
	// MaxAge of both streams.
	MaxAge        time.Duration
	Log, Outcomes StreamState
}

// StreamState is the state of a stream at one time. A recreated log has another Created,
// and its sequences start again.
type StreamState struct {
	Created     time.Time
	First, Last uint64 // sequences; First is Last+1 when the stream is empty
	Messages    uint64
	Bytes       uint64
	MaxBytes    int64
	Replicas    int
}

// State reads the state of a stream. It includes every message that was acknowledged before the
// call. State waits for a leader that most copies follow.
func State(ctx context.Context, js jetstream.JetStream, stream string) (StreamState, error) {
	s, err := jsapi.RetryUntilLeader(ctx, func(ctx context.Context) (jetstream.Stream, error) {
		s, err := js.Stream(ctx, stream)
		if err == nil && !jsapi.HasQuorum(s.CachedInfo().Cluster) {
			err = jsapi.ErrNoQuorum
		}
		return s, err
	})
	if err != nil {
		return StreamState{}, fmt.Errorf("read state of %s: %w", stream, err)
	}
	return stateOf(s.CachedInfo()), nil
}

// ErrNoStreams: no worker has ever run against this server.
var ErrNoStreams = errors.New("the server has no compactd streams; start a worker first")

// Describe returns the streams that a worker has created. It changes nothing and checks only
// the partitions.
func Describe(ctx context.Context, js jetstream.JetStream) (*Streams, error) {
	log, out, err := find(ctx, js)
	if err != nil {
		return nil, err
	}
	if _, bad := tableOf(log.CachedInfo().Config); len(bad) > 0 {
		return nil, fmt.Errorf("look up %s: %w", LogStream, &MismatchError{bad})
	}
	return streamsOf(log, out), nil
}

func find(ctx context.Context, js jetstream.JetStream) (log, out jetstream.Stream, err error) {
	if log, err = lookUp(ctx, js, LogStream); err == nil {
		out, err = lookUp(ctx, js, OutcomesStream)
	}
	if err == nil && (log == nil || out == nil) {
		err = ErrNoStreams
	}
	return log, out, err
}

func streamsOf(log, out jetstream.Stream) *Streams {
	c := log.CachedInfo().Config
	table, _ := tableOf(c) // empty with a mismatch
	return &Streams{Partitions: table, MaxAge: c.MaxAge, Log: stateOf(log.CachedInfo()), Outcomes: stateOf(out.CachedInfo())}
}

func stateOf(i *jetstream.StreamInfo) StreamState {
	return StreamState{
		Created: i.Created, First: i.State.FirstSeq, Last: i.State.LastSeq,
		Messages: i.State.Msgs, Bytes: i.State.Bytes, MaxBytes: i.Config.MaxBytes, Replicas: i.Config.Replicas,
	}
}
