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

// Heartbeat is how often the server confirms that a reader still has its consumer: after two
// that are missed the reader creates another one. A consumer is on one node of a
// cluster, which may be cut off from the node that the reader is connected to; the
// default, 15 s, would leave a partition unread for half a minute.
const Heartbeat = 2 * time.Second

// LogFrom is what [ConsumeLog] reads.
type LogFrom struct {
	// Partitions are those whose subjects are read, in the order of the log.
	Partitions []int
	// Seq is the first sequence wanted; 0 is 1.
	Seq uint64
	// OnError receives interruptions; reading goes on by itself. It must neither
	// block nor stop the reader.
	OnError func(error)
	// OnFetched receives an event that two consumers in a row did not bring, and that
	// was read by its sequence; it is passed on like any other. It must not block.
	OnFetched func(seq uint64, why error)
}

// BeyondEndError reports that a read was to start past the end of the log. The log was recreated, or
// truncated. The server would have waited without an error.
type BeyondEndError struct {
	Stream    string
	Seq, Last uint64
}

func (e *BeyondEndError) Error() string {
	return fmt.Sprintf("sequence %d is beyond the end of %s at %d; the stream was recreated, or truncated by a power loss", e.Seq, e.Stream, e.Last)
}

// ConsumeLog calls fn for every event of some partitions from a sequence on, in
// order, one at a time, and goes on with what is published, across restarts of
// the server. The first sequence may be one past the end, not further:
// [*BeyondEndError]. A slow fn holds the reading back. ctx bounds the start only.
//
// stop ends it: once it returns, fn is not running and will not be called. It
// must not be called from fn.
//
// Every reader may have as much under way as the server's max_payload, or 4 MiB if
// that is more. On an external server keep the sum over the readers of one
// connection below its max_pending, 64 MiB by default; the embedded one has 1 GiB.
//
// After a reconnect to a server whose log was truncated the reader would
// wait past the end: compare [topology.State] with the cursor then ([connect.Options].OnReconnect).
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
	// A filter on the subject agents publish to is accepted and matches nothing.
	r, err := OpenReader(ctx, js, topology.LogStream, Selection{Filters: events.LogFilters(from.Partitions), From: from.Seq}.reading())
	if err != nil {
		return nil, fmt.Errorf("consume log of partitions %v: %w", from.Partitions, err)
	}
	r.Handle(func(m jetstream.Msg, _ *jetstream.MsgMetadata) error { fn(m); return nil })
	r.OnError = func(err error) {
		if !errors.Is(err, errReconnected) { // the owner of the connection is notified
			onError(err)
		}
	}
	if from.OnFetched != nil {
		r.onFetched = from.OnFetched
	}
	r.Start()
	return r.Stop, nil
}
