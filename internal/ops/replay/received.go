package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/request"
	"compactd/internal/broker/retry"
	"compactd/internal/events"
)

// awaitSlice is the wait of one request to a worker for a decision.
const awaitSlice = 4 * time.Second

// receive takes an outcome of the tenant. Where the streams cannot be read it is all that is known of the session.
func (r *run) receive(m *nats.Msg) {
	now := time.Now()
	k, at, err := events.ParsePublished(m.Subject)
	if err != nil {
		return
	}
	body, err := events.DecodeOutcome(k, m.Data)
	if err != nil {
		return // counted as undelivered
	}
	if r.config.Received {
		r.keep(at, body)
	}
	if b, ok := body.(*events.Compacted); ok {
		r.tracker.outcome(b.ID, now)
	}
}

// keep adds an outcome to the report of its session.
func (r *run) keep(at events.Address, body any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.index[at]
	if s == nil {
		return
	}
	if b := s.note(body); b != nil {
		r.causes[b.ID] = b.CausedBy.Seq
	}
}

// awaitReceived waits until the last turn of each session is decided, and its outcomes are received.
func (r *run) awaitReceived(ctx context.Context, rep *Report) error {
	ctx, cancel := context.WithTimeout(ctx, decideTimeout)
	defer cancel()
	for _, s := range r.seen {
		wait := awaitSlice.Milliseconds()
		in := events.OutcomeRequest{About: s.address.About(), Seq: s.last, WaitMS: &wait}
		err := request.SendUntil(ctx, r.config.Conn, events.SubjectOutcome, s.address.Tenant, awaitSlice, in, &events.OutcomeResponse{}, nil)
		if err != nil {
			return fmt.Errorf("wait for the workers: %w; is one running?", err)
		}
	}
	rep.Unanswered = r.requestStats(ctx)
	ctx, cancel = context.WithTimeout(ctx, deliverTimeout)
	defer cancel()
	_ = retry.Every(10*time.Millisecond).Until(ctx, func() (bool, error) { // missing ones are counted then
		rep.Undelivered, rep.Earlier = r.missing()
		return rep.Undelivered == 0, nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index = nil // later ones change no report
	rep.Latencies, _ = r.tracker.compare(r.causes)
	slices.Sort(rep.Latencies)
	return nil
}

// missing counts the compactions that were not received. Compactions of a session that was published
// before may be of then.
func (r *run) missing() (undelivered, earlier int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.seen {
		n := max(0, int(s.generation)-len(s.Generations))
		if s.repeated {
			earlier += n
		} else {
			undelivered += n
		}
	}
	return undelivered, earlier
}
