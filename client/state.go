package client

// phase is how session and log agree. A later phase outweighs those before it.
type phase int

const (
	inStep  phase = iota // the history is that of the log, with what the log lacks
	lacking              // the log lacks turns of the session, which the next call that publishes sends again
	stale                // the history must be read again before it is used
	refused              // a turn was refused: the next call reads the history again, and returns why
	closed               // the session is closed
)

// state is what the next call must do before it uses the history. It is drawn in doc.go.
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
