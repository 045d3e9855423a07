package transcript

import (
	"cmp"
	"time"

	"compactd/internal/events"
)

// Session is one recorded conversation.
type Session struct {
	Name   string
	Format events.Format
	Turns  []Turn
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

// Read reads a file in the format compactd, or all of a directory. An unreadable line is
// an error.
func Read(path string) ([]Session, error) { return read(path, false) }

// ReadThinking reads as Read does, but keeps thinking whose signature was not
// recorded. It was part of the prompts, and counts; no provider takes it back.
func ReadThinking(path string) ([]Session, error) { return read(path, true) }

func read(path string, thinking bool) (out []Session, failed error) {
	source, err := Open(Compactd, path)
	if err != nil {
		return nil, err
	}
	source.Thinking = thinking
	for s := range source.Sessions(func(err error) { failed = cmp.Or(failed, err) }) {
		out = append(out, s)
	}
	return out, failed
}
