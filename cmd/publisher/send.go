package main

import (
	"context"
	"io"
	"os"

	"compactd/internal/events"
	"compactd/internal/replay"
)

type sendCmd struct {
	Session string `required:"" env:"COMPACTD_SESSION" help:"Session of the turn."`
	File    string `arg:"" optional:"" default:"-" help:"Payload, a JSON object; - is standard input."`
}

// Help has examples.
func (*sendCmd) Help() string {
	return `Examples:
  echo '{"messages":[{"role":"user","content":"hi"}]}' | publisher send --session s1
  publisher send --session s1 turn.json`
}

// Run publishes the turn.
func (c *sendCmd) Run(ctx context.Context, f *flags) error {
	payload, err := read(c.File, events.MaxTurnBytes)
	if err != nil {
		return err
	}
	turn, err := events.DecodeTurn(payload)
	if err != nil {
		return err
	}
	a := events.Address{Tenant: f.Tenant, Session: c.Session}
	if err := a.Validate(); err != nil {
		return err
	}
	nc, js, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	seq, err := replay.Send(ctx, js, a, turn.ID, payload)
	if err != nil {
		return err
	}
	return f.stored(seq, turn.ID)
}

// read reads a file, or standard input for -: one byte more than limit at most, so
// that the decoder can say that it is too much.
func read(file string, limit int64) ([]byte, error) {
	in := io.Reader(os.Stdin)
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
