package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
)

const (
	// CanaryStream holds the newest message that a worker wrote to see whether the
	// server still takes writes, and no other.
	CanaryStream = "CANARY"
	// CanarySubject is where it is written.
	CanarySubject = "compactd.canary"
)

// canaryBytes is a page: a full disk may have room for less in a page in use.
const canaryBytes = 4096

// Canary writes one message through js and returns when it is stored. The stream
// is created when it is missing, with as many replicas as [OutcomesStream], on the
// same disks.
func Canary(ctx context.Context, js jetstream.JetStream) error {
	err := publishCanary(ctx, js)
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		if err = ensureCanary(ctx, js); err == nil {
			err = publishCanary(ctx, js)
		}
	}
	return wrap(err, "write canary")
}

func publishCanary(ctx context.Context, js jetstream.JetStream) error {
	_, err := js.Publish(ctx, CanarySubject, make([]byte, canaryBytes), jetstream.WithExpectStream(CanaryStream), jetstream.WithRetryAttempts(0))
	return err
}

func ensureCanary(ctx context.Context, js jetstream.JetStream) error {
	out, err := js.Stream(ctx, OutcomesStream)
	if err != nil {
		return err
	}
	_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: CanaryStream, Description: "compactd: whether the server takes writes", Subjects: []string{CanarySubject},
		Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
		MaxMsgs: 1, MaxBytes: 1 << 20, Replicas: out.CachedInfo().Config.Replicas,
	})
	return err
}

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
	last, err := getFromLeader(ctx, js.Conn(), LogStream, getRequest{LastFor: filter, NoHeader: true})
	if err == nil && last.Seq > cursor {
		last, err = getFromLeader(ctx, js.Conn(), LogStream, getRequest{Seq: cursor + 1, NextFor: filter, NoHeader: true})
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
	return last.logMessage(), nil
}

// JobsWaiting returns how many jobs of a lane no worker has taken yet; 0 when no
// worker ever made summaries.
func JobsWaiting(ctx context.Context, js jetstream.JetStream, lane events.Lane) (uint64, error) {
	c, err := js.Consumer(ctx, OutcomesStream, JobConsumer(lane))
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look up jobs of lane %s: %w", lane, err)
	}
	return c.CachedInfo().NumPending, nil
}

// JobConsumer is the name of the durable consumer that the jobs of a lane are read
// through.
func JobConsumer(lane events.Lane) string { return "summarizer-" + string(lane) }
