package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker"
	"compactd/internal/events"
)

// Compaction is a session.compacted, without its messages: Context has them.
type Compaction struct {
	// Generation counts the compactions of the session, Turn is the last turn it
	// stands for.
	Generation, Turn int64
	// Compacted is false when nothing could be done; Code says why. It may stand
	// beside a new history too: CodeBudgetExceeded.
	Compacted bool
	Code      Code
	// Reason is threshold, limit, background, every_turn, idle, manual, overflow or
	// rewind; Stages are those that changed something.
	Reason string
	Stages []string
	// TokensBefore and TokensAfter estimate the whole input of a call.
	TokensBefore, TokensAfter int64
	Budget                    Budget
}

// Note says that a part of an event was ignored.
type Note struct {
	Code Code
	// Message is a sentence for people, Hint says what to do.
	Message, Hint string
	// Fields are the paths of the fields that were ignored, of the policy with
	// policy_locked.
	Fields []string
}

func compacted(b *events.Compacted) Compaction {
	c := Compaction{
		Generation: b.Generation, Turn: b.Through.Turn, Compacted: b.Compacted, Code: Code(b.Code), Reason: string(b.Reason),
		TokensBefore: b.TokensBefore, TokensAfter: b.TokensAfter, Budget: budget(b.Budget),
	}
	for _, s := range b.StagesUsed {
		c.Stages = append(c.Stages, string(s))
	}
	return c
}

// Headers of a message that a stream republished.
const headerSequence = "Nats-Sequence"

// listen subscribes to what is told of the session. A subscription comes back with
// its connection.
func (s *Session) listen() error {
	for _, k := range events.OutcomeKinds {
		sub, err := s.c.nc.Subscribe(events.Published(k, s.at), func(m *nats.Msg) {
			s.hear(k, m.Data, sequenceOf(m.Header))
		})
		if err != nil {
			s.Close()
			return fmt.Errorf("listen to session %s: %w", s.at.Session, err)
		}
		s.subs = append(s.subs, sub)
	}
	return nil
}

// sequenceOf returns what the server says that a message has; 0 if it says nothing. It adds
// its headers behind those of the publisher, so the last one is its own.
func sequenceOf(h nats.Header) (seq uint64) {
	if all := h[headerSequence]; len(all) > 0 {
		seq, _ = strconv.ParseUint(all[len(all)-1], 10, 64)
	}
	return seq
}

// hear takes one outcome. It may come twice, and late.
func (s *Session) hear(k events.Kind, data []byte, seq uint64) {
	body, err := events.DecodeOutcome(k, data)
	if err != nil {
		return // of a version that this one cannot read; a later compaction repairs it
	}
	s.mu.Lock()
	if s.c.nc.Stats().Reconnects == s.connects { // else some before it may have been missed
		s.heard = max(s.heard, seq)
	}
	var told *Compaction
	switch b := body.(type) {
	case *events.Compacted:
		told = s.hearCompacted(b)
	case *events.BudgetChanged:
		s.hearBudget(b.Budget, b.Through.Seq)
	case *events.Rejected:
		s.hearRejected(b)
	case *events.Forgotten:
		s.hearForgotten(b)
	}
	s.mu.Unlock()
	if told != nil && s.tell != nil {
		s.tell(*told)
	}
	if s.note == nil {
		return
	}
	for _, n := range events.NotesOf(body) {
		s.note(Note{Code(n.Code), n.Message, n.Hint, n.Fields})
	}
}

// hearCompacted swaps the prefix, and hands the answer to who asked for it. What is
// returned was taken just now.
func (s *Session) hearCompacted(b *events.Compacted) *Compaction {
	s.hearBudget(b.Budget, b.Through.Seq)
	c := compacted(b)
	o := offer{b.Generation, b.Through, b.Messages}
	taken := b.Compacted && s.view.take(o)
	if !taken && b.Compacted && s.open != nil {
		s.kept = &o // it may know of the turn whose acknowledgement is on its way
	}
	id := b.CausedBy.ID
	if b.Request != nil {
		id = b.Request.ID
	}
	s.answer(id, answer{compaction: c})
	if !taken {
		return nil
	}
	return &c
}

// hearBudget also learns of generations that were missed.
func (s *Session) hearBudget(b events.Budget, at uint64) {
	if at < s.budgetAt {
		return
	}
	s.budget, s.budgetAt = budget(b), at
	s.told = max(s.told, b.Generation)
}

// hearRejected notes what was refused of our own.
func (s *Session) hearRejected(b *events.Rejected) {
	e := &Error{Code: Code(b.Code), Message: b.Message, Hint: b.Hint}
	i := slices.IndexFunc(s.view.own, func(o own) bool { return o.id == b.CausedBy.ID })
	switch {
	case s.answer(b.CausedBy.ID, answer{err: e}):
	case b.Code == events.CodeSessionReset:
		s.view.generation, s.called, s.told, s.resend = 0, 0, 0, 1
	case i < 0 || s.refused != nil:
	case events.Codes[b.Code].Denies:
		e.Turn = s.view.own[i].number
		s.refused = e
	case b.Code == events.CodeTurnGap && b.Expected > 0:
		s.resend = b.Expected
	}
}

// hearForgotten drops all there is: nothing of it may be published again.
func (s *Session) hearForgotten(b *events.Forgotten) {
	s.view = view{withdrawn: withdrawals{{b.Seq, 0}}}
	s.system, s.tools, s.format, s.open, s.kept = nil, nil, "", nil, nil
	s.called, s.told, s.resend, s.budget = 0, 0, 0, Budget{}
	s.refused = newError(CodeForgotten, "an operator has erased the session", "Begin another, or publish what it shall begin with.")
}

// How long Context waits to catch up, and how long it does not try again where
// nobody answered.
const (
	missedTimeout = 2 * time.Second
	missedPause   = 10 * time.Second
)

// catchUp asks for what was missed. Without an answer the history stays as it is,
// which is valid, and longer than it could be.
func (s *Session) catchUp(ctx context.Context) {
	connects := s.c.nc.Stats().Reconnects
	s.mu.Lock()
	again := connects != s.connects // what was told meanwhile was not heard
	late := !again && !s.missed() || time.Now().Before(s.lookAt)
	s.mu.Unlock()
	if late {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, missedTimeout)
	defer cancel()
	err := s.askContext(ctx)
	if streams, _ := s.c.mayRead(ctx); streams && (again || err != nil) { // refusals too may have been missed
		err = s.replayOutcomes(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.lookAt = time.Now().Add(missedPause)
		return
	}
	s.connects, s.told = connects, s.view.generation // what there is was taken
}

// missed reports whether a newer history was told than the one held.
func (s *Session) missed() bool { return s.told > s.view.generation }

// askContext takes the history that a worker holds, if it is newer.
func (s *Session) askContext(ctx context.Context) error {
	h, err := s.c.history(ctx, s.at, s.lastPublished())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.Known {
		s.told = max(s.told, h.Generation)
		s.view.take(offer{h.Generation, h.Through, nonNil(h.Messages)})
	}
	if s.missed() {
		return errors.New("the worker has not taken all turns yet")
	}
	return nil
}

// ownWait is how long a worker may take for our last turn, less than the contexts of
// those who ask.
const ownWait = 1500 * time.Millisecond

// lastPublished is what a history must hold: our own last turn.
func (s *Session) lastPublished() events.Await {
	s.mu.Lock()
	defer s.mu.Unlock()
	return events.Await{Seq: s.acked}.Within(ownWait)
}

// replayOutcomes hears again what was told since the newest outcome that was heard.
func (s *Session) replayOutcomes(ctx context.Context) error {
	s.mu.Lock()
	from := s.heard + 1
	s.mu.Unlock()
	return broker.ReadSubject(ctx, s.c.nc, broker.OutcomesStream, outcomesOf("*", s.at), from, func(m broker.LogMessage) error {
		at, err := events.ParseOutcome(m.Subject)
		if err != nil {
			return err
		}
		s.hear(at.Kind, m.Data, m.Seq)
		return nil
	})
}

// outcomesOf selects what was told of a session, in whatever partition it is.
func outcomesOf(k events.Kind, a events.Address) string {
	return "out.*." + string(k) + "." + a.String()
}

func nonNil(m []events.Raw) []events.Raw {
	if m == nil {
		return []events.Raw{}
	}
	return m
}
