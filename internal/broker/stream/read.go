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

// readIdle is how long a read may deliver nothing before the reason is looked for.
const readIdle = 250 * time.Millisecond

// ReadStream calls fn for what filter selects of a stream, in order, from
// sequence from up to and including upTo, and returns when it has come there or
// to the end of the stream as it was at the call. upTo 0 means that end. A start
// beyond the end selects nothing. An error of fn ends the read and is returned, unless it is [ErrEnd].
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
	// Foreign includes messages of OUTCOMES that are of no commit by their headers ([Outcome]).
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
	// The reader sends the first result; the one slot keeps the reader from blocking.
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
	done    chan error    // gets the result
	drained chan struct{} // takes one when the consumer has no more
}

// end sends the result, unless there is one, and returns what closes the order filter.
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

// wait returns when there is a result, or when the consumer has looked at all up to the end.
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
			if b.copies == 1 { // no other copy has more
				return nil
			}
		case <-ticker.C:
			// Pending messages may have been purged, or aged away: then no message
			// is ever reported as the last.
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

// selects reports whether a message that the filters match is passed on.
func (s *Selection) selects(m jetstream.Msg) bool {
	return s.Foreign || s.Stream != topology.OutcomesStream || Outcome(m.Subject(), m.Headers())
}

// reading is what the consumer of a selection is to begin with.
func (s Selection) reading() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		FilterSubjects: s.Filters, HeadersOnly: s.HeadersOnly,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(s.From, 1),
	}
}
