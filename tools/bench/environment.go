package main

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
	"compactd/tools/harness"
)

// environment is a server with the streams that are measured.
type environment struct{ *harness.Server }

func openEnvironment(ctx context.Context, dir string) (environment, error) {
	s, err := harness.Start(ctx, dir, "bench")
	return environment{s}, err
}

// serve starts a worker; ledgers is the directory of its checkpoints, "" for none.
func (e environment) serve(ctx context.Context, c *compaction.Config, ledgers string, l observe.Listener) (*harness.Worker, error) {
	return e.Serve(ctx, worker.Config{Compaction: c, Summarizer: extract.New(), Listener: l, Dir: ledgers, SnapshotEvery: 5 * time.Minute})
}

// reset deletes all outcomes and snapshots: the next worker finds a backlog again.
func (e environment) reset(ctx context.Context) error {
	if err := e.JS.DeleteStream(ctx, topology.OutcomesStream); err != nil {
		return err
	}
	if err := snapshot.New(e.JS).Erase(ctx); err != nil {
		return err
	}
	return e.Ensure(ctx)
}

// publish sends turns as fast as the server takes them, and returns their bytes.
func (e environment) publish(ctx context.Context, f *fleet, n int) (bytes int64, err error) {
	return send(ctx, e.JS, n, f.message)
}

// send publishes n messages without waiting for acks in between, and returns their bytes.
func send(ctx context.Context, js jetstream.JetStream, n int, message func(i int) *nats.Msg) (bytes int64, err error) {
	acks := make([]jetstream.PubAckFuture, n)
	for i := range acks {
		m := message(i)
		bytes += int64(len(m.Data))
		if acks[i], err = js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute)); err != nil {
			return bytes, err
		}
	}
	_, err = harness.Acked(ctx, acks)
	return bytes, err
}
