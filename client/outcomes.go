package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Compaction is a session.compacted, without its messages: Context has them.
type Compaction struct {
	// Generation counts the compactions of the session. Turn is the last turn that
	// the compacted history replaces.
	Generation, Turn int64
	// Compacted is false when nothing could be done; Code is the reason. A
	// compaction that was done can have a code too: CodeBudgetExceeded.
	Compacted bool
	Code      Code
	// Reason is threshold, limit, background, every_turn, arrival, media, cost, idle, age, entries,
	// manual, overflow or rewind; Stages are those that changed something.
	Reason string
	Stages []string
	// TokensBefore and TokensAfter estimate the whole input of a call.
	TokensBefore, TokensAfter int64
	Budget                    Budget
}

// Note describes a part of an event that was ignored.
type Note struct {
	Code Code
	// Message is a sentence for people, Hint is the next step.
	Message, Hint string
	// Fields are the paths of the ignored fields, of the policy with policy_locked.
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

// outcomes is the position of a session in the published outcomes.
type outcomes struct {
	last       uint64    // sequence in OUTCOMES up to which none was missed
	connects   uint64    // reconnects after which missed ones were fetched
	generation int64     // the highest one that the workers have published
	next       time.Time // missed ones are not fetched before

	erased, reset uint64 // sequences in the log up to which erasures and resets are applied
}

// Headers of a message that a stream republished.
const headerSequence = "Nats-Sequence"

// subscribe receives the outcomes of the session. A subscription comes back with its
// connection.
func (s *Session) subscribe() error {
	for _, k := range events.OutcomeKinds {
		sub, err := s.c.nc.Subscribe(events.Published(k, s.at), func(m *nats.Msg) {
			s.receive(k, m.Data, sequenceOf(m.Header))
		})
		if err != nil {
			s.Close()
			return fmt.Errorf("subscribe to session %s: %w", s.at.Session, err)
		}
		s.subs = append(s.subs, sub)
	}
	return nil
}

// sequenceOf returns the sequence that the server has put into the headers; 0 if none.
// The server appends its headers to those of the publisher, so the last one is its own.
func sequenceOf(h nats.Header) (seq uint64) {
	if all := h[headerSequence]; len(all) > 0 {
		seq, _ = strconv.ParseUint(all[len(all)-1], 10, 64)
	}
	return seq
}

// receive applies one outcome. It may come twice, and late.
func (s *Session) receive(k events.Kind, data []byte, seq uint64) {
	body, err := events.DecodeOutcome(k, data)
	if err != nil {
		return // of a version that this client cannot read; a later compaction replaces it
	}
	s.mu.Lock()
	if s.c.nc.Stats().Reconnects == s.outcomes.connects { // else some before it may have been missed
		s.outcomes.last = max(s.outcomes.last, seq)
	}
	var c *Compaction
	switch b := body.(type) {
	case *events.Compacted:
		c = s.receiveCompacted(b)
	case *events.BudgetChanged:
		s.receiveBudget(b.Budget, b.Through.Seq)
	case *events.Rejected:
		s.receiveRejected(b)
	case *events.Forgotten:
		s.receiveErasure(b)
	}
	s.mu.Unlock()
	if c != nil && s.onCompaction != nil {
		s.onCompaction(*c)
	}
	if s.onNote == nil {
		return
	}
	for _, n := range events.NotesOf(body) {
		s.onNote(Note{Code(n.Code), n.Message, n.Hint, n.Fields})
	}
}

// receiveCompacted swaps the prefix, and passes the answer to the call that waits for
// it. It returns nil unless the prefix was swapped.
func (s *Session) receiveCompacted(b *events.Compacted) *Compaction {
	s.receiveBudget(b.Budget, b.Through.Seq)
	c := compacted(b)
	o := offer{b.Generation, b.Through, b.Messages, b.BoundThinking}
	swapped := b.Compacted && s.view.accept(o)
	if !swapped && b.Compacted && s.open != nil {
		s.open.deferred = &o // it may contain the turn whose acknowledgement is on its way
	}
	id := b.CausedBy.ID
	if b.Request != nil {
		id = b.Request.ID
	}
	s.answer(id, answer{compaction: c})
	if !swapped {
		return nil
	}
	return &c
}

// receiveBudget also shows generations that were missed.
func (s *Session) receiveBudget(b events.Budget, at uint64) {
	if at < s.budgetAt {
		return
	}
	s.budget, s.budgetAt = budget(b), at
	s.outcomes.generation = max(s.outcomes.generation, b.Generation)
}

// receiveRejected records which of our own turns was refused.
func (s *Session) receiveRejected(b *events.Rejected) {
	e := &Error{Code: Code(b.Code), Message: b.Message, Hint: b.Hint}
	i := slices.IndexFunc(s.view.own, func(o own) bool { return o.id == b.CausedBy.ID })
	switch {
	case s.answer(b.CausedBy.ID, answer{err: e}):
	case b.Code == events.CodeSessionReset && b.Seq <= s.outcomes.reset: // it came twice
	case b.Code == events.CodeSessionReset:
		s.outcomes.reset = b.Seq
		s.view.generation, s.called, s.outcomes.generation = 0, 0, 0
		s.state.lack(1)
	case i < 0:
	case events.Codes[b.Code].Rejects:
		e.Turn = s.view.own[i].number
		s.state.refuse(e)
	case b.Code == events.CodeTurnGap && b.Expected > 0:
		s.state.lack(b.Expected)
	}
}

// receiveErasure drops the whole history: nothing of it may be published again.
func (s *Session) receiveErasure(b *events.Forgotten) {
	if b.Seq <= s.outcomes.erased { // it came twice
		return
	}
	s.outcomes.erased, s.outcomes.reset = b.Seq, max(s.outcomes.reset, b.Seq)
	s.view = view{retracted: retractions{{b.Seq, 0}}}
	s.system, s.tools, s.format, s.open = nil, nil, "", nil
	s.called, s.outcomes.generation, s.budget = 0, 0, Budget{}
	s.state.resynced() // nothing erased is sent again
	s.state.refuse(newError(CodeForgotten, "an operator has erased the session", "Begin another, or publish what it shall begin with."))
}

// How long Context waits to catch up, and the pause before the next try after no
// worker answered.
const (
	missedTimeout = 2 * time.Second
	missedPause   = 10 * time.Second
)

// catchUp fetches missed outcomes. Without an answer the history does not change: it is valid, and longer
// than it could be.
func (s *Session) catchUp(ctx context.Context) {
	connects := s.c.nc.Stats().Reconnects
	s.mu.Lock()
	reconnected := connects != s.outcomes.connects // outcomes published meanwhile were not received
	skip := !reconnected && !s.missed() || time.Now().Before(s.outcomes.next)
	s.mu.Unlock()
	if skip {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, missedTimeout)
	defer cancel()
	err := s.fetchContext(ctx)
	if streams, _ := s.c.mayRead(ctx); streams && (reconnected || err != nil) { // rejections too may have been missed
		err = s.replayOutcomes(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.outcomes.next = time.Now().Add(missedPause)
		return
	}
	s.outcomes.connects, s.outcomes.generation = connects, s.view.generation
}

// missed reports whether a newer history was published than the one held.
func (s *Session) missed() bool { return s.outcomes.generation > s.view.generation }

// fetchContext takes the history of a worker, if it is newer.
func (s *Session) fetchContext(ctx context.Context) error {
	h, err := s.c.history(ctx, s.at, s.lastPublished())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.Known {
		s.outcomes.generation = max(s.outcomes.generation, h.Generation)
		s.view.accept(offer{h.Generation, h.Through, nonNil(h.Messages), h.BoundThinking})
	}
	if s.missed() {
		return errors.New("the worker has not applied all turns yet")
	}
	return nil
}

// ownWait is the time for a worker to apply our last turn. It is less than the timeouts of the requests.
const ownWait = 1500 * time.Millisecond

// lastPublished is our own last turn, which a history must contain.
func (s *Session) lastPublished() events.Await {
	s.mu.Lock()
	defer s.mu.Unlock()
	return events.Await{Seq: s.acked}.Within(ownWait)
}

// replayOutcomes reads the outcomes after the last one received.
func (s *Session) replayOutcomes(ctx context.Context) error {
	s.mu.Lock()
	from := s.outcomes.last + 1
	s.mu.Unlock()
	return stream.ReadSubject(ctx, s.c.nc, topology.OutcomesStream, outcomesOf("*", s.at), from, func(m stream.LogMessage) error {
		at, err := events.ParseOutcome(m.Subject)
		if err != nil {
			return err
		}
		s.receive(at.Kind, m.Data, m.Seq)
		s.mu.Lock()
		s.outcomes.last = max(s.outcomes.last, m.Seq)
		s.mu.Unlock()
		return nil
	})
}

// outcomesOf is the filter for the outcomes of a session, in any partition.
func outcomesOf(k events.Kind, a events.Address) string {
	return "out.*." + string(k) + "." + a.String()
}

func nonNil(m []codec.Raw) []codec.Raw {
	if m == nil {
		return []codec.Raw{}
	}
	return m
}
