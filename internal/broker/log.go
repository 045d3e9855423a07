package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
)

// pullMessages is what a pull asks for at once. Fewer cost throughput (256: × 0.62).
const pullMessages = 2000

// pull bounds what is under way to one reader. The bytes must exceed the largest
// message the server takes, or the reader stalls before it for ever; and they
// should be few, as a connection with more than max_pending (64 MiB) under way is
// cut off, and would be so again after each reconnect. 4 MiB hold 2,000 turns of
// the usual 1.5 KiB.
func pull(js jetstream.JetStream) jetstream.PullConsumeOpt {
	return jetstream.PullMaxMessagesWithBytesLimit(pullMessages, max(4<<20, MaxPayload(js.Conn()))+256<<10)
}

// Heartbeat is how often the server says that a reader still has its consumer: the
// second one that is missed has it made again. A consumer lives on one node of a
// cluster, which may be cut off from the node that the reader is connected to; the
// default, 15 s, would leave a partition unread for half a minute.
const Heartbeat = 2 * time.Second

// readStall is how long a read may be silent before it is asked why.
const readStall = 250 * time.Millisecond

// LogFrom says what [ConsumeLog] reads.
type LogFrom struct {
	Partition int
	// Seq is the first sequence wanted; 0 is 1.
	Seq uint64
	// OnError is told of interruptions; reading goes on by itself. It must neither
	// block nor stop the reader.
	OnError func(error)
}

// BeyondEndError says that a read was to start where the log has not come to:
// the log was made anew, or lost its end. The server would have waited silently.
type BeyondEndError struct {
	Stream    string
	Seq, Last uint64
}

func (e *BeyondEndError) Error() string {
	return fmt.Sprintf("sequence %d is beyond the end of %s at %d; the stream was made anew, or lost its end in a power loss", e.Seq, e.Stream, e.Last)
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
// After a reconnect to a server that lost the end of its log the reader would
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
	cons, err := ordered(ctx, js, Selection{Stream: LogStream, Filters: []string{events.LogFilter(from.Partition)}, From: from.Seq})
	if err != nil {
		return nil, fmt.Errorf("consume log of partition %d: %w", from.Partition, err)
	}
	g := gate{fn: func(m jetstream.Msg, _ *jetstream.MsgMetadata) error { fn(m); return nil }}
	cc, err := cons.Consume(func(m jetstream.Msg) {
		if err := g.pass(m); err != nil {
			onError(fmt.Errorf("consume log of partition %d: %w", from.Partition, err))
		}
	}, pull(js), jetstream.PullHeartbeat(Heartbeat), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { onError(err) }))
	if err != nil {
		return nil, fmt.Errorf("consume log of partition %d: %w", from.Partition, err)
	}
	return func() {
		cc.Stop()
		g.close()
	}, nil
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

// Read is [ReadStream] with more to say.
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
	cons, err := ordered(ctx, js, s)
	if err != nil {
		return err
	}
	// Whoever reads sends the result; the one slot keeps the reader from blocking.
	done := make(chan error, 1)
	errEnd := errors.New("end")
	g := gate{fn: func(m jetstream.Msg, md *jetstream.MsgMetadata) error {
		seq := md.Sequence.Stream
		if seq <= upTo {
			if err := fn(m, seq); err != nil {
				return err
			}
		}
		if seq >= upTo || md.NumPending == 0 {
			return errEnd
		}
		return nil
	}}
	defer discard(ctx, js, s.Stream, cons, &g)
	defer g.close()
	if info := cons.CachedInfo(); info != nil && info.NumPending == 0 {
		return nil
	}
	cc, err := cons.Consume(func(m jetstream.Msg) {
		if err := g.pass(m); err != nil {
			done <- err
		}
	}, pull(js), jetstream.PullHeartbeat(Heartbeat), jetstream.ConsumeErrHandler(func(jetstream.ConsumeContext, error) {}))
	if err != nil {
		return err
	}
	defer cc.Stop()
	stall := time.NewTicker(readStall)
	defer stall.Stop()
	for {
		select {
		case err := <-done:
			if errors.Is(err, errEnd) {
				return nil
			}
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-cc.Closed():
			if js.Conn().IsClosed() {
				return nats.ErrConnectionClosed
			}
			return errReadEnded
		case <-stall.C:
			// What was pending may have been purged, or aged away: then no message
			// will ever say that it is the last.
			if g.idle() && exhausted(ctx, cons, &g) {
				return nil
			}
		}
	}
}

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
	// A consumer stands before the first message that it is to deliver.
	return c.CachedInfo().Delivered.Stream, nil
}

// ordered makes an ordered consumer, once a cluster has a leader for the stream.
func ordered(ctx context.Context, js jetstream.JetStream, s Selection) (jetstream.Consumer, error) {
	return elected(ctx, func() (jetstream.Consumer, error) {
		return js.OrderedConsumer(ctx, s.Stream, jetstream.OrderedConsumerConfig{
			FilterSubjects: s.Filters,
			DeliverPolicy:  jetstream.DeliverByStartSequencePolicy,
			OptStartSeq:    max(s.From, 1),
			HeadersOnly:    s.HeadersOnly,
		})
	})
}

// discard deletes the consumer of a read that is over. The server would keep it for
// five minutes, and whoever reads a thousand sessions has a thousand. Should it
// fail, the server still does.
func discard(ctx context.Context, js jetstream.JetStream, stream string, cons jetstream.Consumer, g *gate) {
	name, _ := g.delivered()
	if info := cons.CachedInfo(); name == "" && info != nil {
		name = info.Name
	}
	if name == "" || !js.Conn().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = js.DeleteConsumer(ctx, stream, name)
}

// exhausted reports whether the server has nothing left for the consumer and all
// that it sent has passed the gate.
func exhausted(ctx context.Context, cons jetstream.Consumer, g *gate) bool {
	info, err := cons.Info(ctx)
	if err != nil || info.NumPending != 0 {
		return false
	}
	consumer, seq := g.delivered()
	if consumer != info.Name {
		return info.Delivered.Consumer == 0
	}
	return info.Delivered.Consumer == seq
}

// gate passes messages one at a time, in order, until it is closed. The ordered
// consumer of nats.go starts a new subscription after a reconnect without waiting
// for the callback of the old one, and its Closed does not wait for it either.
type gate struct {
	fn func(jetstream.Msg, *jetstream.MsgMetadata) error

	mu       sync.Mutex // held while fn runs
	closed   bool
	last     uint64 // stream sequence
	consumer string // of last
	seq      uint64 // of last, in consumer
	seen     uint64 // last, when idle was asked
}

// known is a message whose metadata was read: to read it means to take its reply
// subject apart.
type known struct {
	jetstream.Msg
	metadata *jetstream.MsgMetadata
}

// Metadata implements [jetstream.Msg].
func (m known) Metadata() (*jetstream.MsgMetadata, error) { return m.metadata, nil }

// pass hands m to fn; after an error the gate is closed.
func (g *gate) pass(m jetstream.Msg) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	md, err := m.Metadata()
	if err == nil && md.Sequence.Stream <= g.last {
		err = fmt.Errorf("message %d came after %d", md.Sequence.Stream, g.last)
	}
	if err == nil {
		g.last, g.consumer, g.seq = md.Sequence.Stream, md.Consumer, md.Sequence.Consumer
		err = g.fn(known{m, md}, md)
	}
	g.closed = err != nil
	return err
}

// close waits for fn and lets nothing pass any more.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// idle reports whether nothing has passed since it was asked before.
func (g *gate) idle() bool {
	if !g.mu.TryLock() {
		return false // fn is running
	}
	defer g.mu.Unlock()
	was := g.seen
	g.seen = g.last
	return was == g.last
}

func (g *gate) delivered() (consumer string, seq uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.consumer, g.seq
}

// parseSeq reads a sequence off a header; 0 if there is none.
func parseSeq(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}
