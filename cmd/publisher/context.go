package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/diff"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
)

type contextCmd struct {
	Session    named.Session `required:"" env:"COMPACTD_SESSION" help:"Session to query."`
	Turn       int64         `placeholder:"N" help:"Wait until turn N is taken, refused or parked."`
	Wait       time.Duration `default:"5s" placeholder:"TIME" help:"How long to wait for --turn, 8s at most (${default})."`
	Generation *int64        `placeholder:"N" help:"The history under generation N, with all turns since; 0 is the history as published."`
}

// Run prints the history.
func (c *contextCmd) Run(ctx context.Context, f *flags, nc *nats.Conn) error {
	a := f.address(c.Session)
	in := events.ContextRequest{About: a.About(), Generation: c.Generation}
	if in.Turn = c.Turn; c.Turn != 0 {
		in.Await = in.Within(c.Wait)
	}
	whole, err := request.History(ctx, nc, in)
	if err != nil {
		return err
	}
	whole.Pages = 1
	return f.showKnown(whole.Known, a, whole, func(w io.Writer) error { return writeHistory(w, a, whole) })
}

// writeHistory writes a line for each message.
func writeHistory(w io.Writer, a events.Address, h *events.ContextResponse) error {
	messages, err := h.Format.ReadAll(h.Messages)
	if err != nil && len(h.Messages) > 0 {
		return fmt.Errorf("read the messages: %w", err)
	}
	fmt.Fprintf(w, "%s: generation %d through turn %d, %d messages\n", named.Show(a), h.Generation, h.Through.Turn, len(messages))
	t := term.NewTable(w, term.Column{}, term.Column{Min: 20})
	if h.System != nil {
		text, ok := codec.Text(h.System)
		if !ok {
			text = string(h.System)
		}
		t.Row("prompt", diff.FirstLine(text))
	}
	if h.Tools != nil {
		t.Row("tools", diff.FirstLine(string(h.Tools)))
	}
	for _, m := range messages {
		t.Row(m.Role, diff.Gist(m))
	}
	return t.Flush()
}
