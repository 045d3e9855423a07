package client

import (
	"cmp"
	"context"
	"fmt"

	"compactd/internal/events"
)

// Fork returns a new session that begins with the current history of this one. Zero
// fields of config are taken from this session. The name must have no turns yet.
// Recall and Search of the fork go on in this session, in what it had before.
func (s *Session) Fork(ctx context.Context, name string, config Config) (*Session, error) {
	h, err := s.Context(ctx)
	if err != nil {
		return nil, err
	}
	f, err := s.c.Open(ctx, name, s.inherit(config, h))
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.forked = &events.Fork{Session: s.at.Session, Turn: h.Turn}
	f.mu.Unlock()
	if err := f.adopt(ctx, h); err != nil {
		f.Close()
		return nil, fmt.Errorf("fork session %s: %w", s.at.Session, err)
	}
	return f, nil
}

// inherit fills a config from this session.
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
