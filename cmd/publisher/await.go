package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/request"
	"compactd/internal/broker/stream"
	"compactd/internal/events"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/named"
	"compactd/internal/ops/replay"
)

// watcher follows one turn, or the end of a session.
type watcher struct {
	nc       *nats.Conn
	at       events.Address
	received <-chan *nats.Msg
	turn     *events.Turn // nil: the end
	result   result
	// denied: the server does not let this user send requests or subscribe.
	denied *atomic.Bool
}

// optionalToAwait are the rights that following needs beside publishing, as the server's
// refusals name them.
var optionalToAwait = []string{"Subscription to ", `"` + events.ServiceName + "."}

// publish stores an event of a session, and returns a watcher that receives the outcomes from before it on.
func (f *flags) publish(ctx context.Context, k events.Kind, session named.Session, id string, payload []byte) (*watcher, error) {
	nc, err := f.connect(ctx)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	a := f.address(session)
	received, err := subscribe(nc, a, events.OutcomeKinds)
	if err != nil {
		return nil, err
	}
	e, err := stream.NewEvent(k, a, replay.MessageID(a, cmp.Or(id, uuid.NewString())), payload)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	ack, err := e.Persist(limited, js, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	stored := result{Seq: ack.Sequence, ID: id, State: stateStored, Note: cli.Program("publisher") + " watch shows its outcome"}
	return &watcher{nc: nc, at: a, received: received, result: stored, denied: &f.denied}, nil
}

// publishTimeout bounds the attempts to store an event. One whose acknowledgement was lost is stored once.
const publishTimeout = 10 * time.Second

// subscribe receives what is published about a session from now on.
func subscribe(nc *nats.Conn, a events.Address, kinds []events.Kind) (<-chan *nats.Msg, error) {
	received := make(chan *nats.Msg, 1024)
	for _, k := range kinds {
		if _, err := nc.ChanSubscribe(events.Published(k, a), received); err != nil {
			return nil, err
		}
	}
	return received, nil
}

// printResult waits until the event is decided, for wait at most, and prints its result; 0 does not wait.
func (f *flags) printResult(ctx context.Context, w *watcher, wait time.Duration) error {
	if wait > 0 {
		if err := w.await(ctx, wait); err != nil {
			return err
		}
	}
	return f.show(w.result, w.result.write)
}

const (
	// awaitSlice is the most that a worker waits at once.
	awaitSlice = 500 * time.Millisecond
	// grace is the time for a note to arrive after its turn was taken.
	grace = 250 * time.Millisecond
)

// await waits until the event is taken, parked or refused, and fills in its result. The error is
// a refusal.
func (w *watcher) await(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	var out events.OutcomeResponse
	var s events.StatsResponse
	slice, answered := min(awaitSlice, limit/4), false
	ask := func(subject string, in, out any) error {
		return request.SendUntil(ctx, w.nc, subject, w.at.Tenant, slice, in, out, func(err error) bool {
			answered = answered || err == nil || request.Refused(err, events.CodeTurnPending)
			return !w.denied.Load()
		})
	}
	wait := slice.Milliseconds()
	err := ask(events.SubjectOutcome, events.OutcomeRequest{About: w.at.About(), Seq: w.result.Seq, WaitMS: &wait}, &out)
	if err == nil {
		err = ask(events.SubjectStats, events.StatsRequest{About: w.at.About()}, &s)
	}
	switch {
	case w.denied.Load():
		w.result.Note = "its result is unknown: the server does not let this user send requests and receive outcomes"
		return nil
	case err != nil && errors.Is(context.Cause(ctx), errNoAnswer):
		w.giveUp(limit, answered)
		return nil
	case err != nil:
		return context.Cause(ctx)
	case !out.Accepted:
		return &refusedError{&events.Rejected{Kind: out.Kind, Seq: out.Seq, Code: out.Code, Message: out.Message, Hint: out.Hint}}
	case w.turn == nil:
		w.result.State, w.result.Note = stateTaken, "the session is over, and its next turn begins a new one"
		return nil
	case out.Code == events.CodeTurnGap:
		w.result.State, w.result.Code, w.result.Note, w.result.Hint = stateParked, out.Code, out.Message, out.Hint
		return nil
	case s.Through.Seq < w.result.Seq:
		w.unanswered(&s)
		return nil
	}
	return w.taken(ctx, &s)
}

// taken fills in the result of a turn that was taken, with the notes of its outcomes.
func (w *watcher) taken(ctx context.Context, s *events.StatsResponse) error {
	r := result{Seq: w.result.Seq, ID: w.result.ID, State: stateTaken, Turn: s.Through.Turn, Generation: s.Generation}
	if s.Through.Seq > r.Seq && w.turn.Number > 0 {
		r.Turn = w.turn.Number
	}
	r.Level, r.Input, r.Available = s.Budget.Level, s.Budget.EstimatedInput, s.Budget.AvailableInput
	if p := w.turn.UsageProblem; p != "" { // noted once in a session
		c := events.CodeUsageUnknown
		r.Code, r.Note, r.Hint = c, string(c)+": "+p+"; the turn counts without it.", events.Codes[c].Hint
	}
	notes, err := w.notes(ctx)
	for _, n := range notes {
		r.Code, r.Note, r.Hint = n.Code, noteText(n), n.Hint
	}
	w.result = r
	return err
}

// notes reads the notes of the outcomes that the turn led to. One about its policy is awaited.
func (w *watcher) notes(ctx context.Context) (out []events.Note, err error) {
	late := time.After(grace)
	for len(w.received) > 0 || w.turn.Policy != nil && len(out) == 0 {
		select {
		case <-ctx.Done():
			return out, nil
		case <-late:
			return out, nil
		case m := <-w.received:
			body, err := decodeOutcome(m)
			if err != nil {
				return out, err
			}
			if causeOf(body) == w.result.Seq {
				out = append(out, events.NotesOf(body)...)
			}
		}
	}
	return out, nil
}

// decodeOutcome reads an outcome that was received.
func decodeOutcome(m *nats.Msg) (any, error) {
	k, _, err := events.ParsePublished(m.Subject)
	if err != nil {
		return nil, err
	}
	return events.DecodeOutcome(k, m.Data)
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

// unanswered fills in the result of a turn that leads to no outcome: a duplicate, or one that is
// parked behind others.
func (w *watcher) unanswered(s *events.StatsResponse) {
	switch n := w.turn.Number; {
	case n == 0:
		w.result.State, w.result.Note = stateTaken, "the session has ended since"
	case n > s.Through.Turn+1:
		w.result.State, w.result.Note = stateParked, fmt.Sprintf("turns from %d on are missing before it", s.Through.Turn+1)
		w.result.Hint = events.Codes[events.CodeTurnGap].Hint
	default:
		w.result.State, w.result.Note = stateDuplicate, fmt.Sprintf("turn %d was taken before; the same content again changes nothing", n)
	}
}

// giveUp fills in the result when the time is over.
func (w *watcher) giveUp(limit time.Duration, answered bool) {
	if answered {
		w.result.Note = fmt.Sprintf("no worker has applied it within %s", limit)
		w.result.Hint = cli.Program("publisher") + " watch shows its outcome."
		return
	}
	w.result.Note = fmt.Sprintf("no worker has answered within %s, so it is not applied yet", limit)
	w.result.Hint = "It is applied when a worker runs on this server: " + cli.Program("worker") + " --nats URL."
}
