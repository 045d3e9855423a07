package service

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/trace"
	"compactd/internal/worker/limit"
)

// Event is what an agent publishes.
type Event struct {
	events.Address
	Kind    events.Kind
	ID      string             // "" is a new one
	Payload events.Publishable // valid, as its decoder returns it
	Text    []byte             // that it was decoded from, which the log keeps; nil: its JSON, which a turn has not
	Wait    time.Duration      // until it is decided and its effect is done
}

// publishTime limits all attempts to publish one event.
const publishTime = 6 * time.Second

// Publish stores an event, and answers when it is decided, with the history where it requests one. After an
// error of its own the event may be stored; where it was not decided in time, the answer has turn_pending.
func (s *Service) Publish(ctx context.Context, in *Event) (*events.EventResponse, error) {
	out := &events.EventResponse{V: events.Version, ID: cmp.Or(in.ID, uuid.NewString())}
	limit.Of(ctx).Rest() // until the history is read
	var err error
	body := in.Text
	if body == nil {
		if body, err = codec.Marshal(in.Payload); err != nil {
			return nil, err
		}
	}
	in.Payload, in.Text = nil, nil // the messages of a turn may take as much again as its text, which alone is counted
	if out.Seq, out.Duplicate, err = s.Deliver(ctx, in.Kind, in.Address, out.ID, body, false); err != nil {
		return nil, err
	}
	limit.Of(ctx).Free() // of the body, before memory for a history
	if err := s.follow(ctx, in, out, time.Now().Add(in.Wait)); err != nil {
		refused := Refusal(err)
		if refused.Code != events.CodeTurnPending && refused.Code != events.CodeUnavailable {
			return nil, err
		}
		out.Code, out.Message = events.CodeTurnPending, "the event is stored, and was not decided in time"
		out.Hint = "Go on, or request the outcome of this sequence. To send the event again is safe: it counts once."
	}
	return out, nil
}

// follow waits until an event is decided and its effect is done.
func (s *Service) follow(ctx context.Context, in *Event, event *events.EventResponse, until time.Time) error {
	var out *events.OutcomeResponse
	erases := false
	err := awaitEffect(ctx, time.Until(until), func(left time.Duration) (done bool, err error) {
		wait := left.Milliseconds()
		if out, err = s.Outcome(ctx, &events.OutcomeRequest{About: in.Address.About(), Seq: event.Seq, WaitMS: &wait}); err != nil {
			return false, err
		}
		if erases = in.Kind == events.KindForget && out.Accepted; erases {
			event.Erased, err = s.erased(ctx, in.Address, event.Seq)
		}
		return !unfinished(out) && (!erases || event.Erased != nil), err
	})
	if err != nil {
		return err
	}
	if erases && event.Erased == nil {
		return errUnfinished
	}
	event.Decided, event.Accepted = true, out.Accepted
	event.Code, event.Message, event.Hint, event.Expected = out.Code, out.Message, out.Hint, out.Expected
	event.Generation, event.Through, event.Compaction = out.Generation, out.Through, out.Compaction
	c := out.Compaction
	if c == nil {
		return nil
	}
	if c.Code == events.CodeBudgetExceeded {
		info := events.Codes[c.Code]
		event.Code, event.Message, event.Hint, event.Retry = c.Code, info.Meaning, info.Hint, c.Retry
	}
	if compacts(in.Kind) && (c.Compacted || c.Code == events.CodeNewerGeneration) {
		event.Context = s.historyOf(ctx, in.Address, until)
	}
	return nil
}

// errUnfinished: the event is decided; its effect is not done yet.
var errUnfinished = events.NewInvalid(events.CodeTurnPending, "", "the effect of the event is not done yet")

// erased is what an erasure has done that was requested at a sequence, or a later one; nil
// while it is under way.
func (s *Service) erased(ctx context.Context, a events.Address, seq uint64) (*events.Erased, error) {
	subjects := events.OutcomesIn(s.config.Partitions.Table().Path(a), events.KindErased, a)
	m, err := Reading(ctx, func() (stream.LogMessage, error) {
		return stream.LastOf(ctx, s.config.Answers, topology.OutcomesStream, subjects...)
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil //nolint:nilnil // it is under way
	}
	if err != nil {
		return nil, err
	}
	body, err := events.DecodeOutcome(events.KindErased, m.Data)
	if done, ok := body.(*events.Erased); ok && err == nil && done.Seq >= seq {
		return done, nil
	}
	return nil, nil //nolint:nilnil // it is of an earlier one
}

// historyOf is the first page of a session's history; its field pages counts all. It is nil where
// the tenant got more of them than it may within the time, and where it cannot be read: the event is decided all the
// same, and the agent requests the history.
func (s *Service) historyOf(ctx context.Context, a events.Address, until time.Time) *events.ContextResponse {
	limited, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	count, err := s.limiter.Pace(limited, a.Tenant)
	if err != nil {
		return nil
	}
	out, err := s.Context(ctx, &events.ContextRequest{About: a.About()})
	if err != nil {
		return nil
	}
	count(out.Bytes())
	return out
}

// Deliver publishes an event until it is acknowledged. Its message id is its own id, as with any publisher. The
// server compares message ids over all tenants. An id that another session has used is replaced by one that follows
// from the id and the session: the event is stored, and only once however often it is sent. follows means that the
// id was made from the content: the bytes of two events with it are not compared. The operation of the context holds no
// processor meanwhile.
func (s *Service) Deliver(ctx context.Context, k events.Kind, a events.Address, id string, body []byte, follows bool) (seq uint64, duplicate bool, err error) {
	if !s.config.Partitions.Log.Fits(k, a.Tenant, len(body)) {
		return 0, false, events.Refuse(events.CodeStorageLimit, "the tenant holds as much of the log as others leave it",
			"Send it again when older turns have expired. The operator can raise --max-bytes, or erase sessions.")
	}
	err = limit.Of(ctx).Idle(ctx, func() error {
		stored, err := s.undecided(ctx, k, a, limit.Weight(body))
		if err != nil {
			return err
		}
		ctx, end := trace.Start(ctx, "publish "+string(k), a)
		seq, duplicate, err = s.store(ctx, k, a, id, body, follows)
		end(err)
		if stored(seq); seq > 0 && !duplicate {
			s.config.Partitions.Log.Stored(a.Tenant, len(body))
		}
		return err
	})
	return seq, duplicate, err
}

// undecided takes a place for an event whose decision takes long, because it or its session is large. A tenant
// that used its part of the processors needs a place for smaller events too. Without places a backlog could
// grow before the events of others. The place is held until this worker has decided the event or lost the
// partition, [events.DefaultWait] at most. stored is called with the sequence of the event, 0 if it is not stored.
func (s *Service) undecided(ctx context.Context, k events.Kind, a events.Address, bytes int) (stored func(seq uint64), err error) {
	if k != events.KindTurn {
		_, _, _ = s.inspect(a, func(l *compaction.Ledger) { bytes += l.Weight() }) // of another worker: its own limits
	}
	most := limit.Large
	if limit.Of(ctx).Spent() {
		most /= 8
	}
	if bytes <= most {
		return func(uint64) {}, nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, AnswerTimeout, ErrBusy)
	defer cancel()
	release, err := limit.Of(ctx).Hold(limited, limit.Undecided)
	if err != nil {
		return nil, orEnded(limited, err)
	}
	return func(seq uint64) {
		if seq == 0 {
			release()
			return
		}
		go func() {
			defer release()
			_ = s.awaitDecided(s.answering, a, events.Await{Seq: seq})
		}()
	}, nil
}

// store publishes an event under the first of its message ids that no other event has.
func (s *Service) store(ctx context.Context, k events.Kind, a events.Address, id string, body []byte, follows bool) (seq uint64, duplicate bool, err error) {
	for _, msgID := range []string{id, boundID(a, k, id), uuid.NewString()} {
		e, err := stream.NewEvent(k, a, msgID, body)
		if err != nil {
			return 0, false, err
		}
		seq, duplicate, err = s.send(ctx, e)
		if err != nil || !duplicate {
			return seq, duplicate, err
		}
		same, err := s.isCopy(ctx, k, a, seq, body, follows)
		if err != nil || same {
			return seq, same, err
		}
	}
	return 0, false, events.Refuse(events.CodeDuplicateID, "the id was used for another event", "Use an id of its own for each event.")
}

// boundID returns an id that is derived from a session and an id.
func boundID(a events.Address, k events.Kind, id string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("compactd event "+string(k)+" "+a.String()+" "+id)).String()
}

// isCopy reports whether the stored message at seq is this event, sent before. Another event of the
// session is an error.
func (s *Service) isCopy(ctx context.Context, k events.Kind, a events.Address, seq uint64, body []byte, follows bool) (bool, error) {
	stored, err := Reading(ctx, func() ([]stream.LogMessage, error) { return stream.GetLog(ctx, s.config.Answers, []uint64{seq}) })
	if _, gone := errors.AsType[*stream.GoneError](err); gone {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch same := events.Logs(stored[0].Subject, events.Published(k, a)); {
	case same && (follows || bytes.Equal(stored[0].Data, body)):
		return true, nil
	case same:
		return false, events.Refuse(events.CodeDuplicateID, "the id was used for another event of the session", "Use an id of its own for each event.")
	}
	return false, nil
}

// send publishes until an acknowledgement or a permanent error.
func (s *Service) send(ctx context.Context, e *stream.Event) (seq uint64, duplicate bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	trace.Set(ctx, e.Header)
	if by, ok := callerOf(ctx); ok {
		e.Header.Set(events.HeaderCaller, by.Name+", "+by.From)
	}
	ack, err := e.Persist(ctx, s.config.Publish, nil, nil)
	if err == nil {
		return ack.Sequence, ack.Duplicate, nil
	}
	if taken, ok := errors.AsType[*stream.IDTakenError](err); ok {
		return taken.Seq, true, nil
	}
	if _, invalid := errors.AsType[*events.Invalid](err); invalid {
		return 0, false, err
	}
	if api, refused := errors.AsType[*jetstream.APIError](err); refused && ctx.Err() == nil {
		s.config.Listener.Retry(-1, "publish", err)
		return 0, false, events.Refuse(events.CodeUnavailable, "the server stores no events now: "+api.Description, "Send the same event again in a moment.")
	}
	return 0, false, events.Refuse(events.CodeUnavailable, "no acknowledgement came in time; the event may be stored", "Send the same event again, with the same id: it counts once.")
}

// maxEvent is the largest event that the server takes.
func (s *Service) maxEvent() int { return stream.MaxEvent(s.config.Publish.Conn()) }
