package client

import (
	"cmp"
	"context"
	"fmt"

	"compactd/internal/events"
)

// mend brings log and session together again. Its error is that of a turn that was
// refused, or says why it could not be done.
func (s *Session) mend(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	closed, refused, resend, stale := s.closed, s.refused, s.resend, s.stale
	s.mu.Unlock()
	switch {
	case closed:
		return newError(CodeClosed, "the session is closed", "Open it again.")
	case refused != nil: // the log is the truth
		s.mu.Lock()
		s.acked = 0 // no worker will ever come to it
		s.mu.Unlock()
		if err := s.rebuild(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused, s.announced, s.replace = nil, 0, true // turns after it may wait for it
		return refused
	case resend > 0:
		return s.publishAgain(ctx, resend)
	case stale:
		return s.rebuild(ctx)
	}
	return nil
}

// publishAgain sends the turns from a number on that the log lost, or the whole
// history when they are no longer held apart.
func (s *Session) publishAgain(ctx context.Context, from int64) error {
	s.mu.Lock()
	var turns [][]events.Raw
	if from <= s.view.through.Turn {
		turns, from = split(s.view.prefix), 1
	}
	for _, o := range s.view.own {
		if o.number >= from {
			turns = append(turns, o.messages)
		}
	}
	s.resend, s.announced = 0, 0
	s.mu.Unlock()
	for i, messages := range turns {
		at := int64(0)
		if i == 0 {
			at = from
		}
		if err := s.publish(ctx, messages, nil, at); err != nil {
			s.holdBack(turns[i+1:])
			return fmt.Errorf("send turns from %d again: %w", from, err)
		}
	}
	return nil
}

// holdBack keeps the turns that could not be sent for the next try.
func (s *Session) holdBack(rest [][]events.Raw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.view.last + 1
	if s.stale { // not even the last one was stored
		s.stale, first = false, s.view.last
	}
	for _, messages := range rest {
		s.view.append(own{number: s.view.last + 1, messages: messages})
	}
	if first <= s.view.last {
		s.resend = first
	}
}

// turnBytes is how much of a long history goes into one turn, below what any server
// takes by default.
const turnBytes = 512 << 10

// split makes turns of a history.
func split(messages []events.Raw) (turns [][]events.Raw) {
	begin, size := 0, 0
	for i, m := range messages {
		if size > 0 && size+len(m) > turnBytes {
			turns = append(turns, messages[begin:i])
			begin, size = i, 0
		}
		size += len(m)
	}
	if begin < len(messages) {
		turns = append(turns, messages[begin:])
	}
	return turns
}

// Fork returns a new session that begins with this one's history as it stands; what
// config leaves zero is as here. The name must have no turns yet. Originals stay with
// this session: Recall of the fork knows what was published there.
func (s *Session) Fork(ctx context.Context, name string, config Config) (*Session, error) {
	h, err := s.Context(ctx)
	if err != nil {
		return nil, err
	}
	f, err := s.c.Open(ctx, name, s.inherit(config, h))
	if err != nil {
		return nil, err
	}
	if err := f.adopt(ctx, h); err != nil {
		f.Close()
		return nil, fmt.Errorf("fork session %s: %w", s.at.Session, err)
	}
	return f, nil
}

// inherit fills a config with what holds here.
func (s *Session) inherit(c Config, h *History) Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.Model != nil {
		c.Model = cmp.Or(c.Model, *s.config.Model)
	}
	c.Format = cmp.Or(c.Format, h.Format)
	if c.System == nil {
		c.System = h.System
	}
	if c.Tools == nil {
		c.Tools = h.Tools
	}
	if c.Policy == nil {
		c.Policy = s.config.Policy
	}
	return c
}

// adopt publishes a history as the first turns of a session that has none.
func (s *Session) adopt(ctx context.Context, h *History) error {
	release, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer release()
	s.mu.Lock()
	last := s.view.last
	s.mu.Unlock()
	if last > 0 {
		return newError(CodeTurnConflict, fmt.Sprintf("session %s has %d turns", s.at.Session, last), "Give the fork another name.")
	}
	messages := make([]events.Raw, len(h.Messages))
	for i, m := range h.Messages {
		messages[i] = events.Raw(m)
	}
	for _, turn := range split(messages) {
		if err := s.publish(ctx, turn, nil, 0); err != nil {
			return err
		}
	}
	return nil
}
