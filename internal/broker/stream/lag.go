package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Oldest returns the time of a partition's first event behind cursor, as the
// server took it; the zero time when there is none.
func Oldest(ctx context.Context, js jetstream.JetStream, partition int, cursor uint64) (time.Time, error) {
	m, err := Waiting(ctx, js, partition, cursor)
	return m.Time, err
}

// Waiting returns a partition's first event behind cursor; one without a sequence when
// there is none.
func Waiting(ctx context.Context, js jetstream.JetStream, partition int, cursor uint64) (LogMessage, error) {
	filter := events.LogFilter(partition)
	// The newest event is found at once; a search from an old cursor may pass through
	// all that other partitions received since.
	last, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.LogStream, jsapi.GetRequest{LastFor: filter, NoHeader: true})
	if err == nil && last.Seq > cursor {
		last, err = jsapi.GetFromLeader(ctx, js.Conn(), topology.LogStream, jsapi.GetRequest{Seq: cursor + 1, NextFor: filter, NoHeader: true})
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return LogMessage{}, nil
	}
	if err != nil {
		return LogMessage{}, fmt.Errorf("look for events behind %d of partition %d: %w", cursor, partition, err)
	}
	if last.Seq <= cursor {
		return LogMessage{}, nil
	}
	return logMessage(last), nil
}

// Backlog is what waits behind a cursor of a partition: how many events, and for how long the first of them.
func Backlog(ctx context.Context, js jetstream.JetStream, partition int, cursor uint64) (behind uint64, lag time.Duration, err error) {
	oldest, err := Waiting(ctx, js, partition, cursor)
	if err != nil || oldest.Seq == 0 {
		return 0, 0, err
	}
	behind, err = Behind(ctx, js, partition, cursor)
	return behind, max(time.Since(oldest.Time), 0), err
}

// Jobs returns how many jobs of a lane no worker has taken yet, and how many are taken and not
// finished; 0 when no worker ever made summaries.
func Jobs(ctx context.Context, js jetstream.JetStream, lane events.Lane) (waiting, running int64, err error) {
	c, err := js.Consumer(ctx, topology.OutcomesStream, JobConsumer(lane))
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("look up jobs of lane %s: %w", lane, err)
	}
	return int64(c.CachedInfo().NumPending), int64(c.CachedInfo().NumAckPending), nil
}

// JobConsumer is the name of the durable consumer that the jobs of a lane are read
// through.
func JobConsumer(lane events.Lane) string { return "summarizer-" + string(lane) }

// LastUntil returns the sequence of the last message of a stream that was stored at
// or before a moment, counted in milliseconds; 0 for none.
func LastUntil(ctx context.Context, js jetstream.JetStream, stream string, at time.Time) (uint64, error) {
	after := at.Truncate(time.Millisecond).Add(time.Millisecond)
	c, err := js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &after,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: 5 * time.Second,
	})
	if err != nil {
		return 0, fmt.Errorf("find the end of %s at %s: %w", stream, at, err)
	}
	// A new consumer is at the message before the first that it delivers. It ends by itself too.
	_ = js.DeleteConsumer(ctx, stream, c.CachedInfo().Name)
	return c.CachedInfo().Delivered.Stream, nil
}

// Behind counts the events of a partition that come after cursor. It creates a
// consumer for it, and deletes it.
func Behind(ctx context.Context, js jetstream.JetStream, partition int, cursor uint64) (uint64, error) {
	c, err := js.CreateConsumer(ctx, topology.LogStream, jetstream.ConsumerConfig{
		FilterSubject: events.LogFilter(partition), AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: cursor + 1, InactiveThreshold: 5 * time.Second,
	})
	if err != nil {
		return 0, fmt.Errorf("count events behind %d of partition %d: %w", cursor, partition, err)
	}
	info := c.CachedInfo()
	if err := js.DeleteConsumer(ctx, topology.LogStream, info.Name); err != nil {
		return 0, fmt.Errorf("count events behind %d of partition %d: %w", cursor, partition, err)
	}
	return info.NumPending, nil
}
