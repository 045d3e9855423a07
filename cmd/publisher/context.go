package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/ops/diff"
	"compactd/internal/ops/replay"
	"compactd/internal/ops/term"
)

type contextCmd struct {
	Session    string        `required:"" env:"COMPACTD_SESSION" help:"Session to query."`
	Turn       int64         `placeholder:"N" help:"Wait until turn N was taken or refused, or is parked: the history then has it."`
	Wait       time.Duration `default:"5s" placeholder:"TIME" help:"How long to wait for --turn, 8s at most (${default})."`
	Generation *int64        `placeholder:"N" help:"History as generation N has it, with all turns since; 0 is the history as it was published."`
}

// Run prints the history.
func (c *contextCmd) Run(ctx context.Context, f *flags) error {
	nc, a, err := f.about(ctx, c.Session)
	if err != nil {
		return err
	}
	defer nc.Close()
	in := events.ContextRequest{V: events.Version, Tenant: a.Tenant, Session: a.Session, Generation: c.Generation}
	if in.Turn = c.Turn; c.Turn != 0 {
		in.Await = in.Within(c.Wait)
	}
	whole, err := history(ctx, nc, in)
	if err != nil {
		return err
	}
	return f.showKnown(whole.Known, a, whole, func(w io.Writer) error { return writeHistory(w, a, whole) })
}

// maxTries is how often the pages of a history are requested again when turns
// come in between.
const maxTries = 5

var errMoving = errors.New("the session changes faster than its pages can be read; try again when it is idle")

// history joins all pages of a session's history.
func history(ctx context.Context, nc *nats.Conn, in events.ContextRequest) (*events.ContextResponse, error) {
	for range maxTries {
		whole, same, err := join(ctx, nc, in)
		if err != nil {
			return nil, err
		}
		if same {
			return whole, nil
		}
	}
	return nil, errMoving
}

// join reads the pages once; same reports whether they belong together.
func join(ctx context.Context, nc *nats.Conn, in events.ContextRequest) (whole *events.ContextResponse, same bool, err error) {
	in.Page = 1
	whole = &events.ContextResponse{}
	if err := replay.Request(ctx, nc, events.OfTenant(events.SubjectContext, in.Tenant), in, whole); err != nil {
		return nil, false, err
	}
	pages := whole.Pages
	whole.Pages = 1
	for in.Page = 2; in.Page <= pages; in.Page++ {
		var next events.ContextResponse
		err := replay.Request(ctx, nc, events.OfTenant(events.SubjectContext, in.Tenant), in, &next)
		if isCode(err, events.CodeOutOfRange) {
			return nil, false, nil // it has become shorter
		}
		if err != nil {
			return nil, false, err
		}
		if next.Generation != whole.Generation || next.Through != whole.Through || next.Pages != pages {
			return nil, false, nil
		}
		whole.Messages = append(whole.Messages, next.Messages...)
		if next.System != nil {
			whole.System = next.System
		}
		if next.Tools != nil {
			whole.Tools = next.Tools
		}
	}
	return whole, true, nil
}

func isCode(err error, c events.Code) bool {
	e, ok := errors.AsType[*events.ServiceError](err)
	return ok && e.Code == c
}

// writeHistory writes a line for each message.
func writeHistory(w io.Writer, a events.Address, h *events.ContextResponse) error {
	messages, err := h.Format.ReadAll(h.Messages)
	if err != nil && len(h.Messages) > 0 {
		return fmt.Errorf("read the messages: %w", err)
	}
	fmt.Fprintf(w, "%s: generation %d through turn %d, %d messages\n", a, h.Generation, h.Through.Turn, len(messages))
	t := term.NewTable(w, term.Column{}, term.Column{Min: 20})
	if h.System != nil {
		text, ok := events.Text(h.System)
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
