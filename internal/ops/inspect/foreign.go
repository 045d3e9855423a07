package inspect

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/ops/units"
)

// foreign counts the messages of the last hour that no worker committed, where only workers should write.
func (d *doctor) foreign(ctx context.Context, js jetstream.JetStream, s *topology.Streams) {
	before, err := stream.LastUntil(ctx, js, topology.OutcomesStream, d.Now().Add(-lately))
	n, newest := 0, uint64(0)
	for id := 0; err == nil && id < s.Partitions.Count(); id++ {
		var f commit.Foreign
		if f, err = commit.CountForeign(ctx, d.Conn, id, before); err == nil {
			n, newest = n+f.Messages, max(newest, f.Last)
		}
	}
	switch {
	case err != nil:
		d.problem("outcomes", "", "%v", err)
	case n == 0:
		d.ok("outcomes", "all within %s are of workers", units.Span(lately))
	default:
		d.problem("outcomes", "they are skipped; give workers and agents users of their own, as in deploy/cluster: without, anyone may write there",
			"%d messages in %s within %s are of no worker, the last at sequence %d", n, topology.OutcomesStream, units.Span(lately), newest)
	}
}
