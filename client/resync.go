package client

import (
	"context"
	"fmt"

	"compactd/internal/events/codec"
)

// phase is the agreement of session and log. A later phase outweighs those before it.
type phase int

const (
	inStep  phase = iota // the history is the log's, with the turns that the log lacks
	lacking              // the log lacks turns of the session, which the next call that publishes sends again
	stale                // the history must be read again before it is used
	refused              // a turn was refused: the next call reads the history again, and returns why
	closed               // the session is closed
)

// state decides the next call's steps before it uses the history. It is drawn in doc.go.
type state struct {
	phase phase
	from  int64  // the log lacks the turns from this number on; 0 for none
	err   *Error // of refused
}

// raise enters a phase, unless a later one holds.
func (s *state) raise(p phase) { s.phase = max(s.phase, p) }

// lack records that turns are missing in the log. A refusal found before it ends with the
// history being read again, which finds them too.
func (s *state) lack(from int64) {
	s.from = from
	s.raise(lacking)
}

// refuse records the first refusal.
func (s *state) refuse(e *Error) {
	if s.phase < refused {
		s.phase, s.err = refused, e
	}
}

// sent records that the missing turns were sent again, or are no longer wanted.
func (s *state) sent() {
	if s.from = 0; s.phase == lacking {
		s.phase = inStep
	}
}

// resynced records that the history was read again.
func (s *state) resynced() {
	if s.phase != closed {
		*s = state{}
	}
}

// resync brings session and log together again. Its error is that of a refused turn, or the reason why it
// failed.
func (s *Session) resync(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	st := s.state
	if st.phase == refused {
		s.acked = 0 // no worker will apply it
	}
	s.mu.Unlock()
	switch {
	case st.phase == closed:
		return newError(CodeClosed, "the session is closed", "Open it again.")
	case st.phase == refused: // the log is the truth
		if err := s.rebuild(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent, s.view.parked = nil, true // turns after it may be parked behind it
		return st.err
	case st.from > 0:
		return s.publishAgain(ctx, st.from)
	case st.phase == stale:
		return s.rebuild(ctx)
	}
	return nil
}

// publishAgain sends the turns from a number on, which the log lost. It sends the whole history if they are
// part of the prefix.
func (s *Session) publishAgain(ctx context.Context, from int64) error {
	s.mu.Lock()
	var turns [][]codec.Raw
	if from <= s.view.through.Turn {
		turns, from = split(s.view.prefix), 1
	}
	for _, o := range s.view.own {
		if o.number >= from {
			turns = append(turns, o.messages)
		}
	}
	s.sent = nil
	s.state.sent()
	s.mu.Unlock()
	for i, messages := range turns {
		at := int64(0)
		if i == 0 {
			at = from
		}
		if err := s.publish(ctx, messages, nil, at); err != nil {
			s.requeue(turns[i+1:])
			return fmt.Errorf("send turns from %d again: %w", from, err)
		}
	}
	return nil
}

// requeue keeps the turns that could not be sent for the next resync.
func (s *Session) requeue(rest [][]codec.Raw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.view.last + 1
	if s.state.phase == stale { // not even the last one was stored
		s.state.resynced()
		first = s.view.last
	}
	for _, messages := range rest {
		s.view.append(own{number: s.view.last + 1, messages: messages})
	}
	if first <= s.view.last {
		s.state.lack(first)
	}
}

// turnBytes is the part of a long history in one turn. It is below the default max_payload of a server.
const turnBytes = 512 << 10

// split makes turns of a history.
func split(messages []codec.Raw) (turns [][]codec.Raw) {
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
