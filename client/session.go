package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/events"
)

// Session is one conversation. It holds the effective history, and nothing that a
// compaction has replaced.
type Session struct {
	c    *Client
	at   events.Address
	tell func(Compaction)
	note func(Note)
	subs []*nats.Subscription
	turn chan struct{} // has one while no call publishes

	mu        sync.Mutex // guards the fields below
	acked     uint64     // sequence of the last turn, which is in each history that a worker is asked for
	closed    bool
	config    settings // of the agent
	revision  int      // of config
	announced int      // revision that a turn carried
	format    events.Format
	system    events.Raw
	tools     events.Raw
	view      view
	called    int64     // generation of the last Context
	told      int64     // highest generation heard of
	kept      *offer    // came before the acknowledgement it depends on
	open      *message  // sent, not acknowledged
	refused   *Error    // to be told by the next call
	resend    int64     // turns from this number on are missing in the log; 0 for none
	stale     bool      // the history must be read again before it is used
	replace   bool      // the next turn takes back what waits behind a gap
	budget    Budget    // told last
	budgetAt  uint64    // through which sequence
	heard     uint64    // newest outcome before the connection was lost, by its sequence in OUTCOMES
	connects  uint64    // reconnects that were looked after
	lookAt    time.Time // not before then is looked again for what was missed
	waiting   map[string]chan answer
}

// History is what the next call of the model should get. It is the caller's: the
// session does not write to it.
type History struct {
	// System and Tools as the last turn that set them has them; nil if none did. They
	// are never among Messages.
	System, Tools json.RawMessage
	// Messages in the dialect Format, valid for their provider.
	Messages []json.RawMessage
	Format   string
	// Generation is how many compactions are in it, Turn the number of its last turn.
	Generation, Turn int64
}

// Open returns the session of that name, 1 to 64 of A-Z a-z 0-9 _ -. What was
// published under it is resumed: from a worker if one answers, else from log and
// outcomes. Config is published with the next turn.
func (c *Client) Open(ctx context.Context, name string, config Config) (*Session, error) {
	s := &Session{
		c: c, at: events.Address{Tenant: c.tenant, Session: name}, tell: config.OnCompaction, note: config.OnNote,
		turn: make(chan struct{}, 1), connects: c.nc.Stats().Reconnects, waiting: map[string]chan answer{},
	}
	s.turn <- struct{}{}
	if err := s.at.Validate(); err != nil {
		return nil, typed(err)
	}
	if err := s.Configure(config); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil { // before the history is read, so that nothing falls between
		return nil, err
	}
	if err := s.resume(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// resume reads what there is of a session.
func (s *Session) resume(ctx context.Context) error {
	streams, err := s.c.mayRead(ctx)
	if err != nil {
		return fmt.Errorf("open session %s: %w", s.at.Session, err)
	}
	if streams {
		m, err := broker.LastOf(ctx, s.c.nc, broker.OutcomesStream, outcomesOf("*", s.at))
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("open session %s: %w", s.at.Session, err)
		}
		s.mu.Lock()
		s.heard = max(s.heard, m.Seq)
		s.mu.Unlock()
	}
	if err := s.rebuild(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = s.view.generation
	return nil
}

// Configure changes what holds from the next turn on: a switch of the model, other
// tools. OnCompaction and OnNote stay those of Open.
func (s *Session) Configure(config Config) error {
	set, err := config.settings()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = set
	s.revision++
	if set.System != nil {
		s.system = set.System
	}
	if set.Tools != nil {
		s.tools = set.Tools
	}
	return nil
}

// Close stops listening. What was published stays, and Open resumes it.
func (s *Session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, sub := range s.subs {
		_ = sub.Unsubscribe()
	}
}

// Context returns the history as it should be sent, without waiting for anything but
// what was missed: outcomes while the connection was down, for two seconds at most.
// It does not change between two calls unless a turn or a compaction came. Its error
// tells of a turn that was refused, once; the next call returns the history without
// it.
func (s *Session) Context(ctx context.Context) (*History, error) {
	if s.broken() {
		release, err := s.begin(ctx)
		if err != nil {
			return nil, err
		}
		release()
	}
	s.catchUp(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = s.view.generation
	return &History{
		System: json.RawMessage(s.system), Tools: json.RawMessage(s.tools), Messages: public(s.view.messages()),
		Format: string(s.dialect()), Generation: s.view.generation, Turn: s.view.last,
	}, nil
}

func public(in []events.Raw) []json.RawMessage {
	out := make([]json.RawMessage, len(in))
	for i, m := range in {
		out[i] = json.RawMessage(m)
	}
	return out
}

// dialect is that of the messages held, or to come.
func (s *Session) dialect() events.Format {
	switch {
	case s.format != "":
		return s.format
	case s.config.Format != "":
		return events.Format(s.config.Format)
	case s.config.Model != nil:
		return events.DefaultFormat(s.config.Model.Provider)
	default:
		return events.DefaultFormat("")
	}
}

// broken reports whether the history must be mended before it is used.
func (s *Session) broken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || s.refused != nil || s.stale
}

// begin waits until no other call publishes, and mends what is broken.
func (s *Session) begin(ctx context.Context) (release func(), err error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := s.mend(ctx); err != nil {
		s.turn <- struct{}{}
		return nil, err
	}
	return func() { s.turn <- struct{}{} }, nil
}
