package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
	"compactd/internal/ops/replay"
)

// watcher follows one turn, or the end of a session.
type watcher struct {
	nc    *nats.Conn
	at    events.Address
	heard chan *nats.Msg
	turn  *events.Turn // nil: the end
	fate  fate
	notes []events.Note // beside the outcome of the turn
	// denied: the server does not let this user ask or listen.
	denied *atomic.Bool

	stats   *events.StatsResponse // the newest; nil while no worker has answered
	decided time.Time             // when the session was first seen beyond the event
}

// toFollow are the rights that following needs beside publishing, as the server's
// refusals name them.
var toFollow = []string{"Subscription to ", `"` + events.ServiceName + "."}

// publish stores an event, and has a watcher hear what becomes of it, whose connection
// is the caller's to close.
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

// newWatcher hears what is told of a session from now on.
func newWatcher(nc *nats.Conn, a events.Address, denied *atomic.Bool) (*watcher, error) {
	w := &watcher{nc: nc, at: a, heard: make(chan *nats.Msg, 1024), denied: denied}
	for _, k := range events.OutcomeKinds {
		if _, err := nc.ChanSubscribe(events.Published(k, a), w.heard); err != nil {
			return nil, err
		}
	}
	return w, nil
}

const (
	askEvery = 20 * time.Millisecond
	askLimit = time.Second // of one question; a worker that may be asked answers in milliseconds
	// grace is how long a refusal may be on its way when a later turn of the session
	// was taken.
	grace = 250 * time.Millisecond
	// quiet is the same for a turn that nobody answers.
	quiet = time.Second
)

// await waits until the turn is taken, parked or refused, and fills in its fate. A
// turn that is taken leads to no outcome of its own, so the workers are asked how far
// the session is.
func (w *watcher) await(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		if w.ask(ctx) {
			return nil
		}
		if w.denied.Load() {
			w.fate.Note = "what became of it is not known: the server does not let this user ask and listen"
			return nil
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errNoAnswer) {
				return cause
			}
			w.giveUp(limit)
			return nil
		case m := <-w.heard:
			if done, err := w.hear(m); done || err != nil {
				return err
			}
		case <-tick.C:
		}
	}
}

// hear reports whether an outcome settles the turn. The error is a refusal.
func (w *watcher) hear(m *nats.Msg) (settled bool, err error) {
	k, _, err := events.ParsePublished(m.Subject)
	if err != nil {
		return false, err
	}
	body, err := events.DecodeOutcome(k, m.Data)
	if err != nil {
		return false, err
	}
	if causeOf(body) == w.fate.Seq {
		w.notes = append(w.notes, events.NotesOf(body)...)
	}
	r, ok := body.(*events.Rejected)
	switch {
	case !ok || r.Seq != w.fate.Seq:
		return false, nil
	case events.Codes[r.Code].Denies:
		return true, &refusedError{r}
	case r.Code == events.CodeTurnGap:
		w.fate.State, w.fate.Code, w.fate.Note, w.fate.Hint = stateParked, r.Code, r.Message, r.Hint
		return true, nil
	default: // taken all the same; the session will say so
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

// ask reports whether the session shows that the turn was taken.
func (w *watcher) ask(ctx context.Context) bool {
	var s events.StatsResponse
	in := events.StatsRequest{V: events.Version, Tenant: w.at.Tenant, Session: w.at.Session}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := replay.Ask(ctx, w.nc, events.OfTenant(events.SubjectStats, w.at.Tenant), in, &s); err != nil {
		return false // nobody serves the session just now
	}
	w.stats = &s
	if w.turn == nil {
		return w.ended()
	}
	if !s.Known || s.Through.Seq < w.fate.Seq {
		return w.silent() && w.unrefused(quiet)
	}
	if s.Through.Seq > w.fate.Seq && !w.unrefused(grace) { // by another agent
		return false
	}
	if w.turn.Policy != nil && len(w.notes) == 0 && !w.unrefused(grace) { // a note may be on its way
		return false
	}
	w.fate = fate{Seq: w.fate.Seq, ID: w.fate.ID, State: stateTaken, Turn: s.Through.Turn, Generation: s.Generation}
	if s.Through.Seq > w.fate.Seq && w.turn.Number > 0 {
		w.fate.Turn = w.turn.Number
	}
	w.fate.Level, w.fate.Input, w.fate.Available = s.Budget.Level, s.Budget.EstimatedInput, s.Budget.AvailableInput
	if p := w.turn.UsageProblem; p != "" { // noted once in a session
		c := events.CodeUsageUnknown
		w.fate.Code, w.fate.Note, w.fate.Hint = c, string(c)+": "+p+"; the turn counts without it.", events.Codes[c].Hint
	}
	for _, n := range w.notes {
		w.fate.Code, w.fate.Note, w.fate.Hint = n.Code, noteText(n), n.Hint
	}
	return true
}

// ended reports whether nothing is left of the session that was ended.
func (w *watcher) ended() bool {
	if w.stats.Known || !w.unrefused(grace) {
		return false
	}
	w.fate.State, w.fate.Note = stateTaken, "the session is over, and its next turn begins a new one"
	return true
}

// unrefused reports whether a refusal would have been heard by now: so long after the
// session was first seen as it is with the event.
func (w *watcher) unrefused(after time.Duration) bool {
	if w.decided.IsZero() {
		w.decided = time.Now()
	}
	return time.Since(w.decided) >= after
}

// silent reports whether the turn is of those that nobody answers, unless they are
// refused: a copy, or one that waits as others do. It says so in its fate.
func (w *watcher) silent() bool {
	s, n := w.stats, w.turn.Number
	switch {
	case !s.Known || n == 0:
		return false
	case n <= s.Through.Turn && w.turn.ReplacesFrom == 0:
		w.fate.State, w.fate.Note = stateKnown, fmt.Sprintf("turn %d was taken before: the same content once more changes nothing", n)
	case s.Parked > 0 && n > s.Through.Turn+1:
		w.fate.State, w.fate.Note = stateParked, fmt.Sprintf("turns from %d on are missing before it", s.Through.Turn+1)
		w.fate.Hint = events.Codes[events.CodeTurnGap].Hint
	default:
		return false
	}
	return true
}

// giveUp says what is known when the time is over.
func (w *watcher) giveUp(limit time.Duration) {
	switch {
	case w.stats == nil:
		w.fate.Note = fmt.Sprintf("no worker has answered within %s, so nobody has applied it yet", limit)
		w.fate.Hint = "It is applied when a worker runs on this server: worker --nats URL."
	case w.fate.State == stateStored: // else it is known, or parked, as far as one can see
		w.fate.Note = fmt.Sprintf("no worker has come to it within %s", limit)
		w.fate.Hint = "publisher watch shows what becomes of it."
	}
}
