package broker

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
)

// Compactions are those of a partition, or of all, in a part of OUTCOMES.
type Compactions struct {
	Partition  int // negative is all
	From, UpTo uint64
}

// ReadCompactionSizes passes on, without reading the payloads, how many bytes each
// session.compacted has, whose it is, and when it was stored.
func ReadCompactionSizes(ctx context.Context, js jetstream.JetStream, c Compactions, fn func(tenant string, bytes int64, at time.Time)) error {
	partition := "*"
	if c.Partition >= 0 {
		partition = strconv.Itoa(c.Partition)
	}
	s := Selection{Stream: OutcomesStream, Filters: []string{events.CompactedFilter(partition)}, From: c.From, UpTo: c.UpTo, HeadersOnly: true}
	return Read(ctx, js, s, func(m jetstream.Msg, _ uint64) error {
		at, err := events.ParseOutcome(m.Subject())
		if err != nil {
			return nil //nolint:nilerr // of nobody
		}
		md, err := m.Metadata()
		if err != nil {
			return err
		}
		bytes, _ := strconv.ParseInt(m.Headers().Get(nats.MsgSize), 10, 64)
		fn(at.Address.Tenant, max(bytes, 0), md.Timestamp)
		return nil
	})
}

// CompactedBytes is what the compactions of each tenant hold of OUTCOMES, up to a
// sequence.
func CompactedBytes(ctx context.Context, js jetstream.JetStream, upTo uint64) (map[string]int64, error) {
	held := map[string]int64{}
	err := ReadCompactionSizes(ctx, js, Compactions{Partition: -1, UpTo: upTo}, func(tenant string, bytes int64, _ time.Time) { held[tenant] += bytes })
	return held, err
}
