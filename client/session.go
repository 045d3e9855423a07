package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// Session is one conversation. It holds the effective history, and nothing that a
// compaction has replaced.
type Session struct {
	c            *Client
	at           events.Address
	onCompaction func(Compaction) // nil for none
	onNote       func(Note)       // nil for none
	subs         []*nats.Subscription
	turn         chan struct{} // has one while no call publishes

	mu       sync.Mutex // guards the fields below
	state    state
	config   *settings // of the agent
	sent     *settings // those that the last acknowledged turn carried; nil for none
	format   events.Format
	system   codec.Raw
	tools    codec.Raw
	view     view
	open     *message // sent, not acknowledged
	acked    uint64   // sequence of the last turn; a worker's history must contain it
	called   int64    // generation of the last Context
	budget   Budget   // of the last outcome
	budgetAt uint64   // sequence in the log up to which budget counts
	outcomes outcomes
	waiting  map[string]chan answer // by the id of a request
}

// History is the history for the next call of the model. It is the caller's: the session does not write to
// it.
type History struct {
	// System and Tools are the last that a turn set; nil if none did. They are never among Messages.
	System, Tools json.RawMessage
	// Messages in the dialect Format, valid for their provider.
	Messages []json.RawMessage
	Format   string
	// Generation is the number of its compactions, Turn the number of its last turn.
	Generation, Turn int64
}

// Open returns the session of that name, 1 to 256 bytes of UTF-8; wire.md describes the id
// that it becomes. Events that were published under it are resumed: from a worker if one answers, else
// from log and outcomes. Config is published with the next turn.
func (c *Client) Open(ctx context.Context, name string, config Config) (*Session, error) {
	id, err := events.SessionID(name)
	if err != nil {
		return nil, typed(err)
	}
	s := &Session{
		c: c, at: events.Address{Tenant: c.tenant, Session: id}, onCompaction: config.OnCompaction, onNote: config.OnNote,
		turn: make(chan struct{}, 1), outcomes: outcomes{connects: c.nc.Stats().Reconnects}, waiting: map[string]chan answer{},
	}
	s.turn <- struct{}{}
	if err := s.at.Validate(); err != nil {
		return nil, typed(err)
	}
	if err := s.Configure(config); err != nil {
		return nil, err
	}
	if err := s.subscribe(); err != nil { // before the history is read, so that no outcome is missed
		return nil, err
	}
	if err := s.resume(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// resume reads the history of an existing session.
func (s *Session) resume(ctx context.Context) error {
	streams, err := s.c.mayRead(ctx)
	if err != nil {
		return fmt.Errorf("open session %s: %w", s.at.Session, err)
	}
	if streams {
		m, err := stream.LastOf(ctx, s.c.nc, topology.OutcomesStream, outcomesOf("*", s.at))
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("open session %s: %w", s.at.Session, err)
		}
		s.mu.Lock()
		s.outcomes.last = max(s.outcomes.last, m.Seq)
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

// Configure changes the settings from the next turn on: another model, other tools. OnCompaction and OnNote
// stay those of Open.
func (s *Session) Configure(config Config) error {
	set, err := config.settings()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	bound := s.config != nil && s.bindsThinking()
	s.config = set
	if !bound && s.bindsThinking() || differs(set.System, s.system) || differs(set.Tools, s.tools) {
		s.view.rebind()
	}
	s.system, s.tools = or(set.System, s.system), or(set.Tools, s.tools)
	return nil
}

// differs reports whether a setting changes its value.
func differs(set, was codec.Raw) bool { return set != nil && !bytes.Equal(set, was) }

// bindsThinking reports whether the model's thinking goes only with the history that it was
// made under.
func (s *Session) bindsThinking() bool {
	if s.config.Model == nil {
		return s.view.bound
	}
	m := s.config.Model
	return s.dialect().BindsThinking(events.Model{Provider: m.Provider, Name: m.Name})
}

// mayBind reports whether the model is unknown, and may demand the thinking of the
// open tool loop.
func (s *Session) mayBind() bool {
	m := s.config.Model
	return m != nil && s.dialect().MayBind(events.Model{Provider: m.Provider, Name: m.Name})
}

// Close ends the subscriptions. Published turns stay in the log, and Open resumes the session.
func (s *Session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.raise(closed)
	for _, sub := range s.subs {
		_ = sub.Unsubscribe()
	}
}

// Context returns the history to send with the next call of the model. It does not
// wait for a summary or for any other outcome. After a reconnect it fetches the
// outcomes that were missed, for at most two seconds.
//
// Two calls return the same history unless a turn was published or a compaction was
// received in between. If a worker refused a turn, Context returns its [*Error] once;
// the next call returns the history without that turn.
func (s *Session) Context(ctx context.Context) (*History, error) {
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	s.catchUp(ctx)
	if err := s.refresh(ctx); err != nil { // for an outcome that was missed
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = s.view.generation
	return &History{
		System: json.RawMessage(s.system), Tools: json.RawMessage(s.tools), Messages: public(s.view.messages(s.dialect(), s.bindsThinking(), s.mayBind())),
		Format: string(s.dialect()), Generation: s.view.generation, Turn: s.view.last,
	}, nil
}

func public(in []codec.Raw) []json.RawMessage {
	out := make([]json.RawMessage, len(in))
	for i, m := range in {
		out[i] = json.RawMessage(m)
	}
	return out
}

// dialect is that of the messages of the session, or of its first turn.
func (s *Session) dialect() events.Format {
	return cmp.Or(s.format, s.config.dialect())
}

// refresh resyncs the session if its history must not be used before.
func (s *Session) refresh(ctx context.Context) error {
	s.mu.Lock()
	usable := s.state.phase < stale
	s.mu.Unlock()
	if usable {
		return nil
	}
	release, err := s.begin(ctx)
	if err != nil {
		return err
	}
	release()
	return nil
}

// begin waits until no other call publishes, and resyncs the session.
func (s *Session) begin(ctx context.Context) (release func(), err error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := s.resync(ctx); err != nil {
		s.turn <- struct{}{}
		return nil, err
	}
	return func() { s.turn <- struct{}{} }, nil
}
