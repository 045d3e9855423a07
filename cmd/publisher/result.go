package main

import (
	"fmt"
	"io"

	"compactd/internal/events"
)

// state is how far a published turn has come.
type state string

const (
	stateStored    state = "stored" // the log has it; no worker has applied it yet
	stateTaken     state = "taken"
	stateParked    state = "parked"    // until the turns before it come
	stateDuplicate state = "duplicate" // it was published before
)

// result is the publish result of a turn.
type result struct {
	Seq   uint64 `json:"seq"`
	ID    string `json:"id,omitzero"`
	State state  `json:"state"`
	// Turn is its number, and the others describe the session with it; 0 and "" unless it
	// was taken.
	Turn       int64        `json:"turn,omitzero"`
	Generation int64        `json:"generation,omitzero"`
	Level      events.Level `json:"level,omitzero"`
	Input      int64        `json:"estimated_input_tokens,omitzero"`
	Available  int64        `json:"available_input_tokens,omitzero"`
	// Code and Note describe what needs attention.
	Code events.Code `json:"code,omitzero"`
	Note string      `json:"note,omitzero"`
	Hint string      `json:"hint,omitzero"`
}

// write prints it for people.
func (f result) write(w io.Writer) error {
	switch {
	case f.Turn > 0:
		fmt.Fprintf(w, "stored at sequence %d, taken as turn %d: level %s, %d of %d tokens", f.Seq, f.Turn, f.Level, f.Input, f.Available)
		if f.Generation > 0 {
			fmt.Fprintf(w, ", generation %d", f.Generation)
		}
		fmt.Fprintln(w)
		if f.Note != "" {
			fmt.Fprintf(w, "note: %s\n", f.Note)
		}
	case f.State == stateParked:
		fmt.Fprintf(w, "stored at sequence %d, parked: %s\n", f.Seq, f.Note)
	default:
		fmt.Fprintf(w, "stored at sequence %d; %s\n", f.Seq, f.Note)
	}
	if f.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", f.Hint)
	}
	return nil
}
