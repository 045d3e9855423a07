package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// Heartbeat is the interval at which the server confirms the consumer of a reader. After two missed
// heartbeats the reader creates another consumer. A consumer is on one node of a cluster, which may
// be cut off from the reader's node; the default, 15 s, would leave a partition unread for half a minute.
const Heartbeat = 2 * time.Second

// LogFrom selects the events that [ConsumeLog] reads.
type LogFrom struct {
	// Partitions whose subjects are read, in the order of the log.
	Partitions []int
	// Seq is the first sequence; 0 means 1.
	Seq uint64
	// OnError receives errors after which the reader continues. It must neither
	// block nor stop the reader.
	OnError func(error)
	// OnFetched receives the sequence of an event that two consumers in a row did not deliver
	// and that was read by its sequence. fn gets it like any other. It must not block.
	OnFetched func(seq uint64, why error)
	// OnReplace is called before the reading goes on after a lost link, with a context that ends with the reading. The
	// server may have lost the end of the log: then the reader would wait past the end, or miss new events.
	OnReplace func(context.Context)
}

// BeyondEndError reports that a read would start past the end of the log: the log was recreated or
// truncated. The server would wait without an error.
type BeyondEndError struct {
	Stream    string
	Seq, Last uint64
}

func (e *BeyondEndError) Error() string {
	return fmt.Sprintf("sequence %d is beyond the end of %s at %d; the stream was recreated, or truncated by a power loss", e.Seq, e.Stream, e.Last)
}

// ConsumeLog calls fn for every event of the partitions from a sequence on, in order, one at
// a time. It continues with new events, across restarts of the server. The first sequence may
// be at most one past the end, else it returns [*BeyondEndError]. A slow fn slows the reading
// down. ctx limits only the start.
//
// stop ends it: after it returns, fn is not running and will not be called. fn must not call it.
//
// Every reader may have bytes in flight up to the server's max_payload, or 4 MiB if
// that is more. On an external server keep the sum over the readers of one
// connection below its max_pending, 64 MiB by default; the embedded server has 1 GiB.
//
// After a reconnect to a server with a truncated log the reader would wait past the end: see OnReplace.
func ConsumeLog(ctx context.Context, js jetstream.JetStream, from LogFrom, fn func(jetstream.Msg)) (stop func(), err error) {
	state, err := topology.State(ctx, js, topology.LogStream)
	if err != nil {
		return nil, fmt.Errorf("consume log of partitions %v: %w", from.Partitions, err)
	}
	if from.Seq > state.Last+1 {
		return nil, fmt.Errorf("consume log of partitions %v: %w", from.Partitions, &BeyondEndError{topology.LogStream, from.Seq, state.Last})
	}
	onError := from.OnError
	if onError == nil {
		onError = func(error) {}
	}
	// The filters are on the log's subjects: one on a subject that agents publish to would match nothing.
	r, err := OpenReader(ctx, js, topology.LogStream, Selection{Filters: events.LogFilters(from.Partitions), From: from.Seq}.reading())
	if err != nil {
		return nil, fmt.Errorf("consume log of partitions %v: %w", from.Partitions, err)
	}
	r.Handle(func(m jetstream.Msg, _ *jetstream.MsgMetadata) error { fn(m); return nil })
	r.OnError = func(err error) {
		if !errors.Is(err, errReconnected) { // connect.Options.OnReconnect reports it
			onError(err)
		}
	}
	if from.OnFetched != nil {
		r.onFetched = from.OnFetched
	}
	if from.OnReplace != nil {
		r.onReplace = from.OnReplace
	}
	r.Start()
	return r.Stop, nil
}
