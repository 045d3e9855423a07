package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
)

// callFlags describe the next call of a session.
type callFlags struct {
	Session         named.Session `required:"" env:"COMPACTD_SESSION" help:"Session to query."`
	Provider        string        `placeholder:"NAME" help:"Provider of the call, if it is not the session's."`
	Model           string        `placeholder:"NAME" help:"Model of the call, if it is not the session's."`
	MaxOutputTokens int64         `placeholder:"N" help:"Tokens reserved for the model's answer."`
	ContextWindow   int64         `placeholder:"N" help:"Context window of the model, if it is not that of the table."`
	Tokens          int64         `placeholder:"N" help:"Further tokens to be added, by your own count."`
}

func (c *callFlags) next() events.NextCall {
	return events.NextCall{
		Provider: c.Provider, Model: c.Model, MaxOutputTokens: c.MaxOutputTokens, ContextWindow: c.ContextWindow, Tokens: c.Tokens,
	}
}

type checkCmd struct {
	callFlags
	Messages string `arg:"" optional:"" placeholder:"FILE" help:"Messages to be added, a JSON array; - is standard input."`
}

// errTooLarge sets the exit code for scripts, after the answer.
var errTooLarge = errors.New("the call does not fit; compact the session, or send less")

// Run prints the answer. A call that does not fit is a failure.
func (c *checkCmd) Run(ctx context.Context, f *flags) error {
	a := f.address(c.Session)
	in := events.CheckRequest{About: a.About(), NextCall: c.next()}
	if err := c.add(&in); err != nil {
		return err
	}
	nc, err := f.connect(ctx)
	if err != nil {
		return err
	}
	var out events.CheckResponse
	if err := request.SendOf(ctx, nc, events.SubjectCheck, a.Tenant, in, &out); err != nil {
		return err
	}
	return cmp.Or(f.show(out, func(w io.Writer) error { return writeCheck(w, a, &out) }), mustFit(out.Fits))
}

func mustFit(fits bool) error {
	if fits {
		return nil
	}
	return errTooLarge
}

// add reads the messages.
func (c *checkCmd) add(in *events.CheckRequest) error {
	if c.Messages == "" {
		return nil
	}
	data, err := read(c.Messages, events.MaxCheckBytes)
	if err != nil {
		return err
	}
	if err := codec.Unmarshal(data, &in.Messages); err != nil {
		return events.NewInvalid(events.CodeBadType, "messages", "must be a JSON array")
	}
	return nil
}

// showKnown is the address of a session for people.
func showKnown(a events.Address, known bool) string {
	if known {
		return named.Show(a)
	}
	return named.Show(a) + ", of which no turn was taken"
}

func writeCheck(w io.Writer, a events.Address, r *events.CheckResponse) error {
	return term.Pairs(w,
		"session", showKnown(a, r.Known),
		"fits", r.Fits,
		"level", r.Level,
		"room", fmt.Sprintf("%d tokens", r.Room),
		"added", fmt.Sprintf("%d tokens", r.Added),
		"estimated input", fmt.Sprintf("%d tokens", r.Budget.EstimatedInput),
		"available input", fmt.Sprintf("%d tokens", r.Budget.AvailableInput),
		"needs compaction", r.NeedsCompaction)
}
