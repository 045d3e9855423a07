package whatif

import (
	"time"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/transcript"
)

// Session is what was published about one session, in the order of its log.
type Session struct {
	Address events.Address
	Events  []Event
	// Told says that the events were decided on when they were recorded, each under
	// its Config.
	Told bool
}

// Event is one message of the log.
type Event struct {
	Seq  compaction.Seq
	ID   string // of the message; "" when the publisher gave none
	Time int64  // of the log, in Unix milliseconds
	Kind events.Kind
	Data []byte
	// Config is what the event was decided under; nil for one of a transcript.
	Config *compaction.Config
}

// pause is between two turns of a transcript that does not say when they came.
const pause = 10 * time.Second

// FromTranscript makes the log that the agent of a transcript would have written.
// A turn without a time comes 10 s after the one before it.
func FromTranscript(t transcript.Session) *Session {
	s := &Session{Address: events.Address{Tenant: events.DefaultTenant, Session: t.Name}}
	var now int64
	for i, turn := range t.Turns {
		switch {
		case turn.At.IsZero():
			now += pause.Milliseconds()
		default:
			now = max(now, turn.At.UnixMilli())
		}
		s.Events = append(s.Events, Event{
			Seq: compaction.Seq(i + 1), ID: turn.ID, Time: now, Kind: events.KindTurn, Data: turn.Payload,
		})
	}
	return s
}

// tenths says after which events a tenth of the turns has come.
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
