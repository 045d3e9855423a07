package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
)

// Heartbeat is how often the server confirms that a reader still has its consumer: after two
// that are missed the reader creates another one. A consumer is on one node of a
// cluster, which may be cut off from the node that the reader is connected to; the
// default, 15 s, would leave a partition unread for half a minute.
const Heartbeat = 2 * time.Second

// readIdle is how long a read may deliver nothing before the reason is looked for.
const readIdle = 250 * time.Millisecond

// LogFrom is what [ConsumeLog] reads.
type LogFrom struct {
	Partition int
	// Seq is the first sequence wanted; 0 is 1.
	Seq uint64
	// OnError receives interruptions; reading goes on by itself. It must neither
	// block nor stop the reader.
	OnError func(error)
	// OnFetched receives an event that two consumers in a row did not bring, and that
	// was read by its sequence; it is passed on like any other. It must not block.
	OnFetched func(seq uint64, why error)
}

// BeyondEndError: a read was to start past the end of the log. The log was recreated, or
// truncated. The server would have waited without an error.
type BeyondEndError struct {
	Stream    string
	Seq, Last uint64
}

func (e *BeyondEndError) Error() string {
	return fmt.Sprintf("sequence %d is beyond the end of %s at %d; the stream was recreated, or truncated by a power loss", e.Seq, e.Stream, e.Last)
}

// ConsumeLog calls fn for every event of a partition from a sequence on, in
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
// wait past the end: compare [State] with the cursor then ([Options].OnReconnect).
func ConsumeLog(ctx context.Context, js jetstream.JetStream, from LogFrom, fn func(jetstream.Msg)) (stop func(), err error) {
	state, err := State(ctx, js, LogStream)
	if err != nil {
		return nil, fmt.Errorf("consume log of partition %d: %w", from.Partition, err)
	}
	if from.Seq > state.Last+1 {
		return nil, fmt.Errorf("consume log of partition %d: %w", from.Partition, &BeyondEndError{LogStream, from.Seq, state.Last})
	}
	onError := from.OnError
	if onError == nil {
		onError = func(error) {}
	}
	// A filter on the subject agents publish to is accepted and matches nothing.
	r, err := openReader(ctx, js, LogStream, Selection{Filters: []string{events.LogFilter(from.Partition)}, From: from.Seq}.reading())
	if err != nil {
		return nil, fmt.Errorf("consume log of partition %d: %w", from.Partition, err)
	}
	r.handle(func(m jetstream.Msg, _ *jetstream.MsgMetadata) error { fn(m); return nil })
	r.onError = func(err error) {
		if !errors.Is(err, errReconnected) { // the owner of the connection is notified
			onError(err)
		}
	}
	if from.OnFetched != nil {
		r.onFetched = from.OnFetched
	}
	r.start()
	return r.stop, nil
}

// ReadStream calls fn for what filter selects of a stream, in order, from
// sequence from up to and including upTo, and returns when it has come there or
// to the end of the stream as it was at the call. upTo 0 means that end. A start
// beyond the end selects nothing. An error of fn ends the read and is returned.
func ReadStream(ctx context.Context, js jetstream.JetStream, stream, filter string, from, upTo uint64, fn func(msg jetstream.Msg, seq uint64) error) error {
	return Read(ctx, js, Selection{Stream: stream, Filters: []string{filter}, From: from, UpTo: upTo}, fn)
}

// Selection is a part of a stream.
type Selection struct {
	Stream  string
	Filters []string // none may overlap another
	// From and UpTo are the first and the last sequence; 0 is the beginning, and the
	// end as it is when the reading begins.
	From, UpTo uint64
	// HeadersOnly leaves the payloads out.
	HeadersOnly bool
}

// Read is [ReadStream] for a [Selection].
func Read(ctx context.Context, js jetstream.JetStream, s Selection, fn func(msg jetstream.Msg, seq uint64) error) error {
	if err := readSelection(ctx, js, s, fn); err != nil {
		return fmt.Errorf("read %s %s: %w", s.Stream, strings.Join(s.Filters, ", "), err)
	}
	return nil
}

func readSelection(ctx context.Context, js jetstream.JetStream, s Selection, fn func(jetstream.Msg, uint64) error) error {
	state, err := State(ctx, js, s.Stream)
	if err != nil {
		return err
	}
	upTo := min(cmp.Or(s.UpTo, state.Last), state.Last)
	if s.From > upTo || upTo == 0 {
		return nil
	}
	r, err := openReader(ctx, js, s.Stream, s.reading())
	if err != nil {
		return err
	}
	// The reader sends the first result; the one slot keeps the reader from blocking.
	done, drained := make(chan error, 1), make(chan struct{}, 1)
	end := func(err error) error {
		select {
		case done <- err:
		default:
		}
		return cmp.Or(err, errEnd)
	}
	r.onError = func(err error) {
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			_ = end(err)
		}
	}
	r.handle(func(m jetstream.Msg, md *jetstream.MsgMetadata) error {
		seq := md.Sequence.Stream
		if seq <= upTo {
			if err := fn(m, seq); err != nil {
				return end(err)
			}
		}
		if seq >= upTo {
			return end(nil)
		}
		if md.NumPending == 0 {
			wakeUp(drained)
		}
		return nil
	})
	if r.pending() == 0 {
		wakeUp(drained)
	}
	defer r.leave()
	r.start()
	stall := time.NewTicker(readIdle)
	defer stall.Stop()
	for {
		stalled := false
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case err := <-r.ended:
			return err
		case <-drained:
			if state.Replicas == 1 { // no other copy has more
				return nil
			}
		case <-stall.C:
			// What was pending may have been purged, or aged away: then no message
			// is ever reported as the last.
			if stalled = r.order.idle(); !stalled {
				continue
			}
		}
		at, ok := r.seen(ctx)
		if ok && (at >= upTo || state.Replicas == 1) {
			return nil
		}
		if ok && stalled {
			wakeUp(r.behind)
		}
	}
}

// wakeUp leaves a token, unless there is one.
func wakeUp(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// errEnd: the whole selection has been read.
var errEnd = errors.New("end")

// LastUntil returns the sequence of the last message of a stream that was stored at
// or before a moment, counted in milliseconds; 0 for none.
func LastUntil(ctx context.Context, js jetstream.JetStream, stream string, at time.Time) (uint64, error) {
	after := at.Truncate(time.Millisecond).Add(time.Millisecond)
	c, err := js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &after,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: 5 * time.Second,
	})
	if err != nil {
		return 0, fmt.Errorf("find the end of %s at %s: %w", stream, at, err)
	}
	// A new consumer is at the message before the first that it delivers.
	return c.CachedInfo().Delivered.Stream, nil
}

// reading is what the consumer of a selection is to begin with.
func (s Selection) reading() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		FilterSubjects: s.Filters, HeadersOnly: s.HeadersOnly,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(s.From, 1),
	}
}

// parseSeq reads a sequence off a header; 0 if there is none.
func parseSeq(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}
