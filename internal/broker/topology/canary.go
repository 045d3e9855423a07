package topology

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/jsapi"
)

const (
	// CanaryStream holds the last message that a worker wrote to check whether the
	// server takes writes.
	CanaryStream = "CANARY"
	// CanarySubject is its subject.
	CanarySubject = "compactd.canary"
)

// canaryBytes is a page: a full disk may still have space for less in a page in use.
const canaryBytes = 4096

// Canary writes one message through js and returns when it is stored. It creates a
// missing stream, with as many replicas as [OutcomesStream], on the same disks.
func Canary(ctx context.Context, js jetstream.JetStream) error {
	err := publishCanary(ctx, js)
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		if err = ensureCanary(ctx, js); err == nil {
			err = publishCanary(ctx, js)
		}
	}
	return jsapi.Wrap(err, "write canary")
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
