package stream

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// CompactionSize is the size of one session.compacted in OUTCOMES.
type CompactionSize struct {
	Partition int
	Tenant    string
	Bytes     int64
	Time      time.Time // of storage
}

// ReadCompactionSizes calls fn with the size of each session.compacted from a sequence of
// OUTCOMES up to another, without reading the payloads.
func ReadCompactionSizes(ctx context.Context, js jetstream.JetStream, from, upTo uint64, fn func(CompactionSize)) error {
	s := Selection{Stream: topology.OutcomesStream, Filters: []string{events.CompactedFilter("*")}, From: from, UpTo: upTo, HeadersOnly: true}
	return Read(ctx, js, s, func(m jetstream.Msg, _ uint64) error {
		at, err := events.ParseOutcome(m.Subject())
		if err != nil {
			return nil //nolint:nilerr // in no partition
		}
		md, err := m.Metadata()
		if err != nil {
			return err
		}
		fn(CompactionSize{at.Partition, at.Address.Tenant, SizeOf(m), md.Timestamp})
		return nil
	})
}

// CompactedBytes returns the bytes of compactions in OUTCOMES per tenant, up to a sequence.
func CompactedBytes(ctx context.Context, js jetstream.JetStream, upTo uint64) (map[string]int64, error) {
	held := map[string]int64{}
	err := ReadCompactionSizes(ctx, js, 1, upTo, func(c CompactionSize) { held[c.Tenant] += c.Bytes })
	return held, err
}

// ReadLogSizes calls fn with the tenant and the size of each event of SESSIONS up to a sequence, without
// reading the payloads.
func ReadLogSizes(ctx context.Context, js jetstream.JetStream, upTo uint64, fn func(tenant string, bytes int64)) error {
	s := Selection{Stream: topology.LogStream, From: 1, UpTo: upTo, HeadersOnly: true}
	return Read(ctx, js, s, func(m jetstream.Msg, _ uint64) error {
		if at, err := events.ParseLog(m.Subject()); err == nil {
			fn(at.Address.Tenant, SizeOf(m))
		}
		return nil
	})
}

// SizeOf returns the size of the omitted payload of a message.
func SizeOf(m jetstream.Msg) int64 {
	bytes, _ := strconv.ParseInt(m.Headers().Get(nats.MsgSize), 10, 64)
	return max(bytes, 0)
}
