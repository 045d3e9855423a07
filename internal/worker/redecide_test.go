package worker_test

import (
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/payload"
)

// redecided decides the log again under the config and returns the outcomes, partition by
// partition, in the order of a commit. Of what is recorded it reads which are without the messages of a tenant whose
// histories took long: how long is no matter of the log, and no decision depends on it.
func (env *testEnv) redecided() []outcome {
	env.t.Helper()
	limited := map[string]bool{}
	for _, all := range env.outcomesBySession() {
		for _, o := range all {
			limited[o.id] = strings.Contains(o.data, `"code":"`+string(events.CodeOutcomesLimit)+`"`)
		}
	}
	ctx := env.t.Context()
	var out []outcome
	renderer := payload.NewRenderer(env.conn, 64<<20)
	for p := range env.streams.Partitions {
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
				again := newOutcome(decide.SubjectOf(p, e.OutcomeAddress(), o), data)
				if c, ok := o.Body.(*events.Compacted); ok && limited[again.id] {
					data, err := payload.WithoutMessages(c, payload.LimitNote())
					if err != nil {
						return err
					}
					again.data = string(data)
				}
				out = append(out, again)
			}
			return nil
		})
		if err != nil {
			env.t.Fatalf("decide partition %d again: %v", p, err)
		}
	}
	return out
}
