package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/retry"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
)

// rebuild reads the history again: a worker's, or the last published one, and the later turns of the log. The
// caller holds the turn, and nothing is open.
func (s *Session) rebuild(ctx context.Context) error {
	v, t, err := s.read(ctx)
	if err != nil {
		return fmt.Errorf("resume session %s: %w", s.at.Session, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view, s.format = *v, t.format
	if differs(s.config.System, t.system) || differs(s.config.Tools, t.tools) {
		s.view.rebind()
	}
	s.system, s.tools = or(s.config.System, t.system), or(s.config.Tools, t.tools)
	s.view.parked = len(t.parked) > 0
	s.outcomes.generation = max(s.outcomes.generation, v.generation)
	s.state.resynced()
	return nil
}

func (s *Session) read(ctx context.Context) (*view, *tail, error) {
	streams, err := s.c.mayRead(ctx)
	if err != nil {
		return nil, nil, err
	}
	v, t, err := s.fromWorker(ctx, streams)
	if err == nil || !streams || ctx.Err() != nil {
		return v, t, err
	}
	return s.fromStreams(ctx)
}

// workerTimeout is the time for a worker to apply turns that the log has already.
const workerTimeout = 2 * time.Second

// fromWorker requests the history until it contains all turns that retract others. If the log cannot be read,
// it must contain all acknowledged turns.
func (s *Session) fromWorker(ctx context.Context, streams bool) (*view, *tail, error) {
	ctx, cancel := context.WithTimeout(ctx, workerTimeout)
	defer cancel()
	var v *view
	var t *tail
	var err error
	_ = retry.Pauses{First: 20 * time.Millisecond, Last: time.Second}.Do(ctx, nil, func() error { // err has more
		v, t, err = s.onceFromWorker(ctx, streams)
		return retry.When(errors.Is(err, errBelow), err)
	})
	if errors.Is(err, errBelow) {
		err = newError(CodeUnavailable, "the worker has not applied all turns yet", "Try again in a moment.")
	}
	return v, t, err
}

func (s *Session) onceFromWorker(ctx context.Context, streams bool) (*view, *tail, error) {
	own := s.lastPublished()
	h, err := s.c.history(ctx, s.at, own)
	if err != nil {
		return nil, nil, err
	}
	v := &view{}
	if h.Known {
		v.replacePrefix(offer{h.Generation, h.Through, nonNil(h.Messages), h.BoundThinking})
	}
	t := &tail{view: v, format: h.Format, system: h.System, tools: h.Tools}
	if streams {
		err = t.read(ctx, s.c.nc, s.at, 1)
	} else if h.Through.Seq < own.Seq {
		err = errBelow
	}
	return v, t, err
}

// fromStreams needs no worker. If the newest outcome contains retracted turns, an older one is the base, or
// none.
func (s *Session) fromStreams(ctx context.Context) (*view, *tail, error) {
	var w retractions
	for {
		v := &view{retracted: w}
		from, format, err := s.newest(ctx, v)
		if err != nil {
			return nil, nil, err
		}
		t := &tail{view: v, format: format}
		err = t.read(ctx, s.c.nc, s.at, from)
		switch {
		case errors.Is(err, errBelow):
			w = v.retracted
			continue
		case err != nil:
			return nil, nil, err
		}
		if err := t.prompt(ctx, s.c.nc, s.at); err != nil {
			return nil, nil, err
		}
		return v, t, nil
	}
}

// newest takes the newest published history without retracted turns, and returns its
// sequence in OUTCOMES.
func (s *Session) newest(ctx context.Context, v *view) (at uint64, format events.Format, err error) {
	take := func(m stream.LogMessage) error {
		b := &events.Compacted{}
		if err := codec.Unmarshal(m.Data, b); err != nil {
			return fmt.Errorf("read outcome %d: %w", m.Seq, err)
		}
		if b.Compacted && b.Messages != nil && v.retracted.allow(b.Through) { // one after another: a session may have begun again
			w := v.retracted
			v.replacePrefix(offer{b.Generation, b.Through, b.Messages, b.BoundThinking})
			v.last, v.retracted, at, format = b.Through.Turn, w, m.Seq, b.Format
		}
		return nil
	}
	filter := outcomesOf(events.KindCompacted, s.at)
	m, err := stream.LastOf(ctx, s.c.nc, topology.OutcomesStream, filter)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 1, "", nil
	case err != nil:
		return 0, "", err
	}
	if err := take(m); err != nil || at > 0 {
		return at, format, err
	}
	at = 1
	err = stream.ReadSubject(ctx, s.c.nc, topology.OutcomesStream, filter, 1, take)
	return at, format, err
}
