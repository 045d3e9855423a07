package outcomelog

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
)

// Outcome is one outcome as OUTCOMES holds it.
type Outcome struct {
	Subject string
	Address events.Address
	Kind    events.Kind
	Cause   compaction.Seq // the event it was published about
	Data    []byte
	Err     error // it cannot be read
}

// Reader reads those of a partition beside its log, in order, one ahead.
type Reader struct {
	next chan Outcome // closed at the end
	done chan error   // gets why it ended
	head *Outcome     // read, and not yet taken
	over bool
	quit context.CancelFunc
}

// NewReader begins to read; it ends with the outcomes, or with stop.
func NewReader(ctx context.Context, js jetstream.JetStream, s stream.Selection, h *Markers) *Reader {
	o := &Reader{next: make(chan Outcome), done: make(chan error, 1)}
	ctx, o.quit = context.WithCancel(ctx)
	go func() {
		defer close(o.next)
		var cause compaction.Seq
		o.done <- stream.Read(ctx, js, s, func(m jetstream.Msg, seq uint64) error {
			at, ok := followsEvent(m.Subject())
			if !ok || h.isForeign(seq) {
				return nil
			}
			x := Outcome{Subject: m.Subject(), Address: at.Address, Kind: at.Kind, Data: m.Data()}
			if _, x.Cause, x.Err = decodeOutcome(at.Kind, x.Data); x.Err != nil {
				x.Cause = cause // about where it was published
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

// Stop ends the reading, and returns when it has ended.
func (o *Reader) Stop() {
	o.quit()
	for range o.next { // until it ends
	}
}

// peek is the next outcome, nil at the end.
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

// take returns the next outcomes as long as they fit.
func (o *Reader) take(ctx context.Context, fits func(*Outcome) bool) (out []Outcome, err error) {
	for {
		x, err := o.peek(ctx)
		if err != nil || x == nil || !fits(x) {
			return out, err
		}
		out, o.head = append(out, *x), nil
	}
}

// Before returns the outcomes that were published about events before seq, and were
// not taken.
func (o *Reader) Before(ctx context.Context, seq compaction.Seq) ([]Outcome, error) {
	return o.take(ctx, func(x *Outcome) bool { return x.Cause < seq })
}

// Of returns what was published about an event; those before it must have been taken.
func (o *Reader) Of(ctx context.Context, seq compaction.Seq) ([]Outcome, error) {
	return o.take(ctx, func(x *Outcome) bool { return x.Cause == seq })
}
