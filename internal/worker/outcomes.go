package worker

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/compaction"
	"compactd/internal/events"
)

// stored is one outcome as OUTCOMES holds it.
type stored struct {
	subject string
	address events.Address
	kind    events.Kind
	cause   compaction.Seq // the event it was told about
	data    []byte
	err     error // it cannot be read
}

// outcomes reads those of a partition beside its log, in order, one ahead.
type outcomes struct {
	next chan stored // closed at the end
	done chan error  // gets why it ended
	head *stored     // read, and not yet asked for
	over bool
	quit context.CancelFunc
}

// readOutcomes begins to read; it ends with the outcomes, or with stop.
func readOutcomes(ctx context.Context, js jetstream.JetStream, s broker.Selection, h *markerHistory) *outcomes {
	o := &outcomes{next: make(chan stored), done: make(chan error, 1)}
	ctx, o.quit = context.WithCancel(ctx)
	go func() {
		defer close(o.next)
		var cause compaction.Seq
		o.done <- broker.Read(ctx, js, s, func(m jetstream.Msg, seq uint64) error {
			at, err := events.ParseOutcome(m.Subject())
			if err != nil || at.Kind == events.KindErased {
				return nil //nolint:nilerr // a marker, or what an owner did: it follows from no event
			}
			x := stored{subject: m.Subject(), address: at.Address, kind: at.Kind, data: m.Data()}
			if _, x.cause, x.err = recordedOutcome(at.Kind, x.data); x.err != nil {
				x.cause = cause // about where it was told
			}
			if cause = x.cause; h.superseded(seq, cause) {
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

// stop ends the reading, and returns when it has ended.
func (o *outcomes) stop() {
	o.quit()
	for range o.next { // until it ends
	}
}

// peek is the next outcome, nil at the end.
func (o *outcomes) peek(ctx context.Context) (*stored, error) {
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
func (o *outcomes) take(ctx context.Context, fits func(*stored) bool) (out []stored, err error) {
	for {
		x, err := o.peek(ctx)
		if err != nil || x == nil || !fits(x) {
			return out, err
		}
		out, o.head = append(out, *x), nil
	}
}

// before returns the outcomes that were told about events before seq, and were
// not asked for.
func (o *outcomes) before(ctx context.Context, seq compaction.Seq) ([]stored, error) {
	return o.take(ctx, func(x *stored) bool { return x.cause < seq })
}

// of returns what was told about an event; those before it must have been taken.
func (o *outcomes) of(ctx context.Context, seq compaction.Seq) ([]stored, error) {
	return o.take(ctx, func(x *stored) bool { return x.cause == seq })
}
