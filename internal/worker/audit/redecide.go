package audit

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/worker/decide"
	"compactd/internal/worker/payload"
)

// Redecided is one outcome as it follows from the log.
type Redecided struct {
	Subject string // out.<p>.…
	Data    []byte
}

// Redecide decides the whole log again under a config and passes on every
// outcome, partition by partition, in the order it would be committed. It reads
// only, and looks at no recorded outcome: what it gives is what the log alone
// states. It stops at the end of the log as it was at the call.
func Redecide(ctx context.Context, nc *nats.Conn, partitions int, c *compaction.Config, emit func(Redecided) error) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("decide again: %w", err)
	}
	t := payload.NewRenderer(nc, 64<<20)
	for p := range partitions {
		d := decide.New(c)
		err := stream.ReadStream(ctx, js, topology.LogStream, events.LogFilter(p), 1, 0, func(m jetstream.Msg, _ uint64) error {
			e, _, err := decide.ReadEvent(m)
			if err != nil {
				return err
			}
			outs, text := d.Process(e)
			if text {
				t.Put(e)
			}
			for _, o := range outs {
				data, _, err := t.Outcome(ctx, e.OutcomeAddress(), o, connect.MaxPayload(nc))
				if err != nil {
					return err
				}
				if err := emit(Redecided{decide.SubjectOf(p, e.OutcomeAddress(), o), data}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("decide again: partition %d: %w", p, err)
		}
	}
	return nil
}
