package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/ops/replay"
)

// watcher follows one turn, or the end of a session.
type watcher struct {
	nc       *nats.Conn
	at       events.Address
	received chan *nats.Msg
	turn     *events.Turn // nil: the end
	result   result
	notes    []events.Note // beside the outcome of the turn
	// denied: the server does not let this user send requests or subscribe.
	denied *atomic.Bool

	stats   *events.StatsResponse // the newest; nil while no worker has answered
	decided time.Time             // when the session was first seen beyond the event
}

// optionalToAwait are the rights that following needs beside publishing, as the server's
// refusals name them.
var optionalToAwait = []string{"Subscription to ", `"` + events.ServiceName + "."}

// publish stores an event, and returns a watcher of its outcomes, whose connection is
// the caller's to close.
func (f *flags) publish(ctx context.Context, k events.Kind, a events.Address, id string, payload []byte) (*watcher, *jetstream.PubAck, error) {
	nc, js, err := f.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	w, err := newWatcher(nc, a, &f.denied)
	var ack *jetstream.PubAck
	if err == nil {
		ack, err = replay.Publish(ctx, js, k, a, replay.MessageID(a, id), payload)
	}
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return w, ack, nil
}

// newWatcher receives the outcomes of a session from now on.
func newWatcher(nc *nats.Conn, a events.Address, denied *atomic.Bool) (*watcher, error) {
	w := &watcher{nc: nc, at: a, received: make(chan *nats.Msg, 1024), denied: denied}
	for _, k := range events.OutcomeKinds {
		if _, err := nc.ChanSubscribe(events.Published(k, a), w.received); err != nil {
			return nil, err
		}
	}
	return w, nil
}

const (
	pollEvery   = 20 * time.Millisecond
	pollTimeout = time.Second // of one request; a worker answers in milliseconds
	// grace is how long a refusal may be on its way when a later turn of the session
	// was taken.
	grace = 250 * time.Millisecond
	// unansweredGrace is the same for a turn that leads to no outcome.
	unansweredGrace = time.Second
)

// await waits until the turn is taken, parked or refused, and fills in its result. A
// turn that is taken leads to no outcome of its own, so the state of the session is
// requested from the workers.
func (w *watcher) await(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if w.poll(ctx) {
			return nil
		}
		if w.denied.Load() {
			w.result.Note = "its result is unknown: the server does not let this user send requests and receive outcomes"
			return nil
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errNoAnswer) {
				return cause
			}
			w.giveUp(limit)
			return nil
		case m := <-w.received:
			if done, err := w.receive(m); done || err != nil {
				return err
			}
		case <-tick.C:
		}
	}
}

// receive reports whether an outcome decides the turn. The error is a refusal.
func (w *watcher) receive(m *nats.Msg) (decided bool, err error) {
	k, _, err := events.ParsePublished(m.Subject)
	if err != nil {
		return false, err
	}
	body, err := events.DecodeOutcome(k, m.Data)
	if err != nil {
		return false, err
	}
	if causeOf(body) == w.result.Seq {
		w.notes = append(w.notes, events.NotesOf(body)...)
	}
	r, ok := body.(*events.Rejected)
	switch {
	case !ok || r.Seq != w.result.Seq:
		return false, nil
	case events.Codes[r.Code].Rejects:
		return true, &refusedError{r}
	case r.Code == events.CodeTurnGap:
		w.result.State, w.result.Code, w.result.Note, w.result.Hint = stateParked, r.Code, r.Message, r.Hint
		return true, nil
	default: // taken all the same; the stats will show it
		return false, nil
	}
}

// causeOf is the sequence of the event that an outcome with notes follows from.
func causeOf(body any) uint64 {
	switch b := body.(type) {
	case *events.Compacted:
		return b.CausedBy.Seq
	case *events.BudgetChanged:
		return b.CausedBy.Seq
	}
	return 0
}

// poll reports whether the session shows that the turn was taken.
func (w *watcher) poll(ctx context.Context) bool {
	var s events.StatsResponse
	in := events.StatsRequest{V: events.Version, Tenant: w.at.Tenant, Session: w.at.Session}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if err := request.Send(ctx, w.nc, events.OfTenant(events.SubjectStats, w.at.Tenant), in, &s); err != nil {
		return false // no worker serves the session now
	}
	w.stats = &s
	if w.turn == nil {
		return w.ended()
	}
	if !s.Known || s.Through.Seq < w.result.Seq {
		return w.unanswered() && w.unrefused(unansweredGrace)
	}
	if s.Through.Seq > w.result.Seq && !w.unrefused(grace) { // by another agent
		return false
	}
	if w.turn.Policy != nil && len(w.notes) == 0 && !w.unrefused(grace) { // a note may be on its way
		return false
	}
	w.result = result{Seq: w.result.Seq, ID: w.result.ID, State: stateTaken, Turn: s.Through.Turn, Generation: s.Generation}
	if s.Through.Seq > w.result.Seq && w.turn.Number > 0 {
		w.result.Turn = w.turn.Number
	}
	w.result.Level, w.result.Input, w.result.Available = s.Budget.Level, s.Budget.EstimatedInput, s.Budget.AvailableInput
	if p := w.turn.UsageProblem; p != "" { // noted once in a session
		c := events.CodeUsageUnknown
		w.result.Code, w.result.Note, w.result.Hint = c, string(c)+": "+p+"; the turn counts without it.", events.Codes[c].Hint
	}
	for _, n := range w.notes {
		w.result.Code, w.result.Note, w.result.Hint = n.Code, noteText(n), n.Hint
	}
	return true
}

// ended reports whether nothing is left of the session that was ended.
func (w *watcher) ended() bool {
	if w.stats.Known || !w.unrefused(grace) {
		return false
	}
	w.result.State, w.result.Note = stateTaken, "the session is over, and its next turn begins a new one"
	return true
}

// unrefused reports whether a refusal would have come by now: so long after the session
// was first seen with the event applied.
func (w *watcher) unrefused(after time.Duration) bool {
	if w.decided.IsZero() {
		w.decided = time.Now()
	}
	return time.Since(w.decided) >= after
}

// unanswered reports whether the turn leads to no outcome unless it is refused: a
// duplicate, or one that is parked behind others. It fills in the result.
func (w *watcher) unanswered() bool {
	s, n := w.stats, w.turn.Number
	switch {
	case !s.Known || n == 0:
		return false
	case n <= s.Through.Turn && w.turn.ReplacesFrom == 0:
		w.result.State, w.result.Note = stateDuplicate, fmt.Sprintf("turn %d was taken before; the same content again changes nothing", n)
	case s.Parked > 0 && n > s.Through.Turn+1:
		w.result.State, w.result.Note = stateParked, fmt.Sprintf("turns from %d on are missing before it", s.Through.Turn+1)
		w.result.Hint = events.Codes[events.CodeTurnGap].Hint
	default:
		return false
	}
	return true
}

// giveUp fills in the result when the time is over.
func (w *watcher) giveUp(limit time.Duration) {
	switch {
	case w.stats == nil:
		w.result.Note = fmt.Sprintf("no worker has answered within %s, so it is not applied yet", limit)
		w.result.Hint = "It is applied when a worker runs on this server: worker --nats URL."
	case w.result.State == stateStored: // else it is a duplicate or parked, as far as the stats show
		w.result.Note = fmt.Sprintf("no worker has applied it within %s", limit)
		w.result.Hint = "publisher watch shows its outcome."
	}
}
