package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
)

// readIdle is the interval of checks for a read that delivers nothing.
const readIdle = 250 * time.Millisecond

// ReadStream calls fn for the messages of a stream that match filter, in order, from sequence
// from up to and including upTo. It returns there, or at the end of the stream at the time of the
// call; upTo 0 means that end. A start beyond the end selects nothing. An error of fn ends the
// read and is returned, unless it is [ErrEnd].
func ReadStream(ctx context.Context, js jetstream.JetStream, stream, filter string, from, upTo uint64, fn func(msg jetstream.Msg, seq uint64) error) error {
	return Read(ctx, js, Selection{Stream: stream, Filters: []string{filter}, From: from, UpTo: upTo}, fn)
}

// Selection is a part of a stream.
type Selection struct {
	Stream  string
	Filters []string // must not overlap
	// From and UpTo are the first and the last sequence. 0 means the beginning, and the end
	// of the stream at the begin of the read.
	From, UpTo uint64
	// HeadersOnly omits the payloads.
	HeadersOnly bool
	// Foreign includes messages of OUTCOMES whose headers exclude a commit ([Outcome]).
	Foreign bool
}

// Read is [ReadStream] for a [Selection].
func Read(ctx context.Context, js jetstream.JetStream, s Selection, fn func(msg jetstream.Msg, seq uint64) error) error {
	if err := readSelection(ctx, js, s, fn); err != nil && !errors.Is(err, ErrEnd) {
		return fmt.Errorf("read %s %s: %w", s.Stream, strings.Join(s.Filters, ", "), err)
	}
	return nil
}

func readSelection(ctx context.Context, js jetstream.JetStream, s Selection, fn func(jetstream.Msg, uint64) error) error {
	state, err := topology.State(ctx, js, s.Stream)
	if err != nil {
		return err
	}
	upTo := min(cmp.Or(s.UpTo, state.Last), state.Last)
	if s.From > upTo || upTo == 0 {
		return nil
	}
	r, err := OpenReader(ctx, js, s.Stream, s.reading())
	if err != nil {
		return err
	}
	// done has one slot, so that the reader sends the result without blocking.
	b := &boundedRead{Selection: s, r: r, fn: fn, upTo: upTo, copies: state.Replicas, done: make(chan error, 1), drained: make(chan struct{}, 1)}
	r.OnError = func(err error) {
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			_ = b.end(err)
		}
	}
	r.Handle(b.take)
	if r.Pending() == 0 {
		retry.Wake(b.drained)
	}
	defer r.Leave()
	r.Start()
	return b.wait(ctx)
}

// boundedRead is a read up to a sequence.
type boundedRead struct {
	Selection
	r       *Reader
	fn      func(jetstream.Msg, uint64) error
	upTo    uint64
	copies  int           // of the stream
	done    chan error    // receives the result
	drained chan struct{} // receives a token when the consumer has no further message
}

// end sends the result, unless one was sent, and returns an error that closes the order filter.
func (b *boundedRead) end(err error) error {
	select {
	case b.done <- err:
	default:
	}
	return cmp.Or(err, ErrEnd)
}

// take is the handler of the reader.
func (b *boundedRead) take(m jetstream.Msg, md *jetstream.MsgMetadata) error {
	seq := md.Sequence.Stream
	if seq <= b.upTo && b.selects(m) {
		if err := b.fn(m, seq); err != nil {
			return b.end(err)
		}
	}
	if seq >= b.upTo {
		return b.end(nil)
	}
	if md.NumPending == 0 {
		retry.Wake(b.drained)
	}
	return nil
}

// wait returns the result, or when the consumer has passed the end.
func (b *boundedRead) wait(ctx context.Context) error {
	ticker := time.NewTicker(readIdle)
	defer ticker.Stop()
	for {
		idle := false
		select {
		case err := <-b.done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case err := <-b.r.ended:
			return err
		case <-b.drained:
			if b.copies == 1 { // there is no other copy with more messages
				return nil
			}
		case <-ticker.C:
			// Pending messages may have been purged or have expired: then the server reports
			// no message as the last.
			if idle = b.r.order.idle(); !idle {
				continue
			}
		}
		at, ok := b.r.seen(ctx)
		if ok && (at >= b.upTo || b.copies == 1) {
			return nil
		}
		if ok && idle {
			retry.Wake(b.r.behind)
		}
	}
}

// selects reports whether a message that matches the filters is passed to fn.
func (s *Selection) selects(m jetstream.Msg) bool {
	return s.Foreign || s.Stream != topology.OutcomesStream || Outcome(m.Subject(), m.Headers())
}

// reading returns the configuration of the first consumer.
func (s Selection) reading() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		FilterSubjects: s.Filters, HeadersOnly: s.HeadersOnly,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(s.From, 1),
	}
}
