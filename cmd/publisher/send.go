package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"compactd/internal/events"
	"compactd/internal/ops/named"
)

type sendCmd struct {
	Session named.Session `required:"" env:"COMPACTD_SESSION" help:"Session of the turn."`
	Wait    time.Duration `default:"5s" placeholder:"TIME" help:"How long to wait for a worker to take or refuse the turn (${default}); 0 does not wait."`
	File    string        `arg:"" optional:"" default:"-" help:"Payload, a JSON object; - is standard input."`
}

// Run publishes the turn and prints its result.
func (c *sendCmd) Run(ctx context.Context, f *flags) error {
	payload, err := read(c.File, events.MaxTurnBytes)
	if err != nil {
		return err
	}
	if len(payload) == 0 {
		return events.NewInvalid(events.CodeBadJSON, "", "there is no turn: the file, or standard input, is empty")
	}
	turn, err := decode(payload)
	if err != nil {
		return err
	}
	f.optional = optionalToAwait
	w, err := f.publish(ctx, events.KindTurn, c.Session, turn.ID, payload)
	if err != nil {
		return err
	}
	w.turn = turn
	return f.printResult(ctx, w, c.Wait)
}

// decode reads a turn as a worker does, as far as that is possible without the turns
// before it.
func decode(payload []byte) (*events.Turn, error) {
	turn, err := events.DecodeTurn(payload)
	if err != nil {
		return nil, err
	}
	return turn, readable(turn)
}

// readable refuses messages that are not of their dialect: the one that the turn names,
// or that of the model of a first turn. Later turns may leave it to the session; then any
// dialect that reads them is enough.
func readable(t *events.Turn) error {
	first := events.DefaultFormat(t.Model)
	if t.Format != "" {
		first = t.Format
	}
	_, err := first.ReadNew(t.Messages)
	if err == nil || t.Format != "" || t.Number == 1 && t.ReplacesFrom == 0 {
		return err
	}
	for _, other := range events.Formats() {
		if _, bad := other.ReadNew(t.Messages); bad == nil {
			return nil
		}
	}
	return err
}

// read reads a file, or standard input for -: one byte more than limit at most, so
// that the decoder reports the excess.
func read(file string, limit int64) ([]byte, error) {
	in := io.Reader(os.Stdin)
	if file == "-" && isatty.IsTerminal(os.Stdin.Fd()) {
		fmt.Fprintln(os.Stderr, "publisher: reading standard input; Ctrl-D ends it")
	}
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, limit+1))
}

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
