package outcomelog

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
)

// Outcome is one outcome in OUTCOMES.
type Outcome struct {
	Subject string
	Address events.Address
	Kind    events.Kind
	Cause   measure.Seq // the event that caused it
	Data    []byte
	Err     error // set if it cannot be decoded
}

// Reader reads the outcomes of a partition in order, one ahead.
type Reader struct {
	next chan Outcome // closed at the end
	done chan error   // receives the error at the end
	head *Outcome     // read, and not yet taken
	over bool
	quit context.CancelFunc
}

// NewReader begins to read. The reading ends with the outcomes or with Stop.
func NewReader(ctx context.Context, js jetstream.JetStream, s stream.Selection, h *Markers) *Reader {
	o := &Reader{next: make(chan Outcome), done: make(chan error, 1)}
	ctx, o.quit = context.WithCancel(ctx)
	go func() {
		defer close(o.next)
		var cause measure.Seq
		o.done <- stream.Read(ctx, js, s, func(m jetstream.Msg, seq uint64) error {
			at, ok := followsEvent(m.Subject())
			if !ok || h.isForeign(seq) {
				return nil
			}
			x := Outcome{Subject: m.Subject(), Address: at.Address, Kind: at.Kind, Data: m.Data()}
			if _, x.Cause, x.Err = decodeOutcome(at.Kind, x.Data); x.Err != nil {
				x.Cause = cause // the cause of the previous outcome is close
			}
			if cause = x.Cause; h.superseded(seq, cause) {
				return nil
			}
			select {
			case o.next <- x:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return o
}

// Stop ends the reading, and waits for its end.
func (o *Reader) Stop() {
	o.quit()
	for range o.next { // until it is closed
	}
}

// peek returns the next outcome, or nil at the end.
func (o *Reader) peek(ctx context.Context) (*Outcome, error) {
	if o.head != nil || o.over {
		return o.head, nil
	}
	select {
	case x, ok := <-o.next:
		if ok {
			o.head = &x
			return o.head, nil
		}
		o.over = true
		return nil, <-o.done
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take returns the next outcomes while fits accepts them.
func (o *Reader) take(ctx context.Context, fits func(*Outcome) bool) (out []Outcome, err error) {
	for {
		x, err := o.peek(ctx)
		if err != nil || x == nil || !fits(x) {
			return out, err
		}
		out, o.head = append(out, *x), nil
	}
}

// Before returns the outcomes of events before seq that were not taken yet.
func (o *Reader) Before(ctx context.Context, seq measure.Seq) ([]Outcome, error) {
	return o.take(ctx, func(x *Outcome) bool { return x.Cause < seq })
}

// Of returns the outcomes of an event. Call it after Before with the same sequence.
func (o *Reader) Of(ctx context.Context, seq measure.Seq) ([]Outcome, error) {
	return o.take(ctx, func(x *Outcome) bool { return x.Cause == seq })
}
