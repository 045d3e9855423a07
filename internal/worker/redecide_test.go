package worker_test

import (
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/payload"
)

// redecided decides the log again under the config and returns the outcomes, partition by
// partition, in the order of a commit. It reads no recorded outcome.
func (env *testEnv) redecided() []outcome {
	env.t.Helper()
	ctx := env.t.Context()
	var out []outcome
	renderer := payload.NewRenderer(env.conn, 64<<20)
	for p := range env.streams.Partitions.Count() {
		d := decide.New(env.config)
		err := stream.ReadStream(ctx, env.js, topology.LogStream, events.LogFilter(p), 1, 0, func(m jetstream.Msg, _ uint64) error {
			e, _, err := decide.ReadEvent(m)
			if err != nil {
				return err
			}
			outs, text := d.Process(e)
			if text {
				renderer.Put(e)
			}
			for _, o := range outs {
				data, _, err := renderer.Outcome(ctx, nil, e.OutcomeAddress(), o, connect.MaxPayload(env.conn))
				if err != nil {
					return err
				}
				out = append(out, newOutcome(decide.SubjectOf(p, e.OutcomeAddress(), o), data))
			}
			return nil
		})
		if err != nil {
			env.t.Fatalf("decide partition %d again: %v", p, err)
		}
	}
	return out
}
