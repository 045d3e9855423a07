package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"compactd/internal/events"
	"compactd/internal/replay"
)

type sendCmd struct {
	Session string `required:"" env:"COMPACTD_SESSION" help:"Session of the turn."`
	File    string `arg:"" optional:"" default:"-" help:"Payload, a JSON object; - is standard input."`
}

// Run publishes the turn.
func (c *sendCmd) Run(ctx context.Context, f *flags) error {
	payload, err := c.read()
	if err != nil {
		return err
	}
	turn, err := events.DecodeTurn(payload)
	if err != nil {
		return err
	}
	nc, js, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	seq, err := replay.Send(ctx, js, events.Address{Tenant: f.Tenant, Session: c.Session}, turn.ID, payload)
	if err != nil {
		return err
	}
	if f.JSON {
		return printJSON(struct {
			Seq uint64 `json:"seq"`
			ID  string `json:"id,omitzero"`
		}{seq, turn.ID})
	}
	fmt.Printf("stored at sequence %d; publisher watch shows what becomes of it\n", seq)
	return nil
}

// read reads one byte more than a turn may have, so that the decoder can say so.
func (c *sendCmd) read() ([]byte, error) {
	in := io.Reader(os.Stdin)
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	return io.ReadAll(io.LimitReader(in, events.MaxTurnBytes+1))
}
