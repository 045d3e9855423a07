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

// Waiting returns the first event after cursor that is stored under one of the partitions. Without one the
// sequence and the time are 0. [partitions.Table.Sources] returns the sources of a partition.
func Waiting(ctx context.Context, js jetstream.JetStream, sources []int, cursor uint64) (first LogMessage, err error) {
	for _, p := range sources {
		m, err := waiting(ctx, js, events.LogFilter(p), cursor)
		if err != nil {
			return first, fmt.Errorf("look for events behind %d of partition %d: %w", cursor, p, err)
		}
		if m.Seq > 0 && (first.Seq == 0 || m.Seq < first.Seq) {
			first = m
		}
	}
	return first, nil
}

func waiting(ctx context.Context, js jetstream.JetStream, filter string, cursor uint64) (LogMessage, error) {
	// A look-up of the newest event is fast; a search from an old cursor may pass through
	// all later events of other partitions.
	last, err := jsapi.GetFromLeader(ctx, js.Conn(), topology.LogStream, jsapi.GetRequest{LastFor: filter, NoHeader: true})
	if err == nil && last.Seq > cursor {
		last, err = jsapi.GetFromLeader(ctx, js.Conn(), topology.LogStream, jsapi.GetRequest{Seq: cursor + 1, NextFor: filter, NoHeader: true})
	}
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && last.Seq <= cursor {
		return LogMessage{}, nil
	}
	if err != nil {
		return LogMessage{}, err
	}
	return logMessage(last), nil
}

// Backlog returns the number of events after the cursor of a partition, and the age of the first of them.
func Backlog(ctx context.Context, js jetstream.JetStream, sources []int, cursor uint64) (behind uint64, lag time.Duration, err error) {
	oldest, err := Waiting(ctx, js, sources, cursor)
	if err != nil || oldest.Seq == 0 {
		return 0, 0, err
	}
	behind, err = Behind(ctx, js, sources, cursor)
	return behind, max(time.Since(oldest.Time), 0), err
}

// Jobs returns the number of jobs of a lane that wait for a worker, and the number that run. Both are 0
// before a worker made the first summaries.
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

// JobConsumer returns the name of the durable consumer for the jobs of a lane.
func JobConsumer(lane events.Lane) string { return "summarizer-" + string(lane) }

// LastUntil returns the sequence of the last message of a stream that was stored at
// or before a time, in whole milliseconds; 0 without one.
func LastUntil(ctx context.Context, js jetstream.JetStream, stream string, at time.Time) (uint64, error) {
	after := at.Truncate(time.Millisecond).Add(time.Millisecond)
	c, err := js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &after,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: 5 * time.Second,
	})
	if err != nil {
		return 0, fmt.Errorf("find the end of %s at %s: %w", stream, at, err)
	}
	// A new consumer is at the message before the first that it delivers. It also expires by itself.
	_ = js.DeleteConsumer(ctx, stream, c.CachedInfo().Name)
	return c.CachedInfo().Delivered.Stream, nil
}

// Behind counts the events after cursor that are stored under one of the partitions. It creates and
// deletes a consumer for it.
func Behind(ctx context.Context, js jetstream.JetStream, sources []int, cursor uint64) (uint64, error) {
	c, err := js.CreateConsumer(ctx, topology.LogStream, jetstream.ConsumerConfig{
		FilterSubjects: events.LogFilters(sources), AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: cursor + 1, InactiveThreshold: 5 * time.Second,
	})
	if err != nil {
		return 0, fmt.Errorf("count events behind %d of partitions %v: %w", cursor, sources, err)
	}
	info := c.CachedInfo()
	if err := js.DeleteConsumer(ctx, topology.LogStream, info.Name); err != nil {
		return 0, fmt.Errorf("count events behind %d of partitions %v: %w", cursor, sources, err)
	}
	return info.NumPending, nil
}
