package transcript

import (
	"time"

	"compactd/internal/events"
)

// Session is one recorded conversation.
type Session struct {
	Name   string
	Format events.Format
	Turns  []Turn

	// Missing counts what the recording lacks of the prompts, or has in a form that only the
	// provider reads, by kind, such as "encrypted reasoning".
	Missing map[string]int
}

// Turn is one session.turn.
type Turn struct {
	ID       string
	Number   int64
	At       time.Time // when its last message was recorded; zero if unknown
	Payload  []byte
	Messages []events.Raw // those in Payload

	// Input is what the provider counted for the prompt of the turn's answer, in
	// tokens; 0 when it is not known. It stands also where Payload leaves usage
	// out: from the turn with Restarted on, which the recorded agent's own
	// compaction came before, it counts another history.
	Input     int64
	Output    int64 // that it counted for the answer
	Restarted bool
	Summary   string // what the recorded agent wrote at that compaction, "" where it is not known
}
