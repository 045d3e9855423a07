package whatif

import (
	"slices"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/ops/transcript"
)

// Session is a session as published, in the order of its log.
type Session struct {
	Address events.Address
	Events  []Event
	// Decided reports that the events were decided on when they were recorded, each under
	// its Config.
	Decided bool
	// Missing counts what a transcript lacks, by kind; see [transcript.Session].
	Missing map[string]int
}

// Event is one message of the log.
type Event struct {
	Seq  measure.Seq
	ID   string // of the message; "" when the publisher gave none
	Time int64  // of the log, in Unix milliseconds
	Kind events.Kind
	Data []byte
	// Config is the config of the event's decision; nil for a transcript.
	Config *compaction.Config
}

// writer is the model that wrote the last summary of a recorded session, else that of otherwise.
func (s *Session) writer(otherwise func(*events.Job) string) func(*events.Job) string {
	for _, e := range slices.Backward(s.Events) {
		if !s.Decided || e.Kind != events.KindSummary {
			continue
		}
		made, err := events.DecodeSummary(e.Data)
		if err != nil || made.Failure != "" {
			continue
		}
		if made.Model == Embedded {
			made.Model = ""
		}
		return func(*events.Job) string { return made.Model }
	}
	return otherwise
}

// pause is between two turns of a transcript that does not say when they came, and
// maxPause the most that is between any two: after an idle month a log has lost
// the session, and its agent sends the whole history again.
const (
	pause    = 10 * time.Second
	maxPause = 24 * time.Hour
)

// FromTranscript makes the log that the agent of a transcript would have written.
// A turn without a time comes 10 s after the one before it, and any after a day at
// most.
func FromTranscript(t transcript.Session) *Session {
	s := &Session{Address: events.Address{Tenant: events.DefaultTenant, Session: t.Name}, Missing: t.Missing}
	var now, before int64 // of the log, and of the turn before as it was recorded
	for i, turn := range t.Turns {
		at := turn.At.UnixMilli()
		switch {
		case turn.At.IsZero():
			now += pause.Milliseconds()
		case before == 0:
			now, before = max(now, at), at
		default:
			now += min(max(at-before, 0), maxPause.Milliseconds())
			before = max(at, before)
		}
		s.Events = append(s.Events, Event{
			Seq: measure.Seq(i + 1), ID: turn.ID, Time: now, Kind: events.KindTurn, Data: turn.Payload,
		})
	}
	return s
}

// tenths returns the indexes of the events that complete a tenth of the turns.
func (s *Session) tenths() map[int]bool {
	var turns []int
	for i, e := range s.Events {
		if e.Kind == events.KindTurn {
			turns = append(turns, i)
		}
	}
	out := map[int]bool{}
	for k := range 10 {
		if n := len(turns) * (k + 1) / 10; n > 0 {
			out[turns[n-1]] = true
		}
	}
	return out
}
