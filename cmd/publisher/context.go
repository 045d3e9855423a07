package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/replay"
)

type contextCmd struct {
	Session    string `required:"" env:"COMPACTD_SESSION" help:"Session to ask about."`
	Generation *int64 `placeholder:"N" help:"History as generation N has it, with all turns since; 0 is the history as it was published."`
}

// Help has examples.
func (*contextCmd) Help() string {
	return `Examples:
  publisher context --session s1
  publisher context --session s1 --json              # messages as they go to the provider
  publisher context --session s1 --generation 0      # as it was published`
}

// Run prints the history.
func (c *contextCmd) Run(ctx context.Context, f *flags) error {
	nc, a, err := f.about(ctx, c.Session)
	if err != nil {
		return err
	}
	defer nc.Close()
	whole, err := history(ctx, nc, events.ContextRequest{V: events.Version, Tenant: a.Tenant, Session: a.Session, Generation: c.Generation})
	if err != nil {
		return err
	}
	return f.show(whole, func(w io.Writer) error { return writeHistory(w, a, whole) })
}

// maxTries is how often the pages of a history are asked for anew, when turns
// come in between.
const maxTries = 5

var errMoving = errors.New("the session changes faster than its pages can be read; ask again when it is idle")

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
	if err := replay.Ask(ctx, nc, events.OfTenant(events.SubjectContext, in.Tenant), in, whole); err != nil {
		return nil, false, err
	}
	pages := whole.Pages
	whole.Pages = 1
	for in.Page = 2; in.Page <= pages; in.Page++ {
		var next events.ContextResponse
		err := replay.Ask(ctx, nc, events.OfTenant(events.SubjectContext, in.Tenant), in, &next)
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
	if !h.Known {
		return unknown(w, a)
	}
	messages, err := h.Format.ReadAll(h.Messages)
	if err != nil && len(h.Messages) > 0 {
		return fmt.Errorf("read the messages: %w", err)
	}
	fmt.Fprintf(w, "%s: generation %d through turn %d, %d messages\n", a, h.Generation, h.Through.Turn, len(messages))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if h.System != nil {
		text, ok := events.Text(h.System)
		if !ok {
			text = string(h.System)
		}
		fmt.Fprintf(t, "prompt\t%s\n", line(text))
	}
	if h.Tools != nil {
		fmt.Fprintf(t, "tools\t%s\n", line(string(h.Tools)))
	}
	for _, m := range messages {
		fmt.Fprintf(t, "%s\t%s\n", m.Role, line(gist(m)))
	}
	return t.Flush()
}

// gist says a message in a few words: its texts, calls and results.
func gist(m events.Message) string {
	var out []string
	for _, p := range m.Parts {
		switch p.Kind {
		case events.PartText:
			out = append(out, p.Text)
		case events.PartCall:
			out = append(out, fmt.Sprintf("call %s %s", p.Tool, p.Args))
		case events.PartResult:
			out = append(out, "result: "+p.Text)
		case events.PartThinking:
			out = append(out, "(thinking)")
		case events.PartImage:
			out = append(out, "(image)")
		default:
			out = append(out, "(other)")
		}
	}
	for i, s := range out {
		out[i] = firstLine(s)
	}
	return strings.Join(out, " | ")
}

func firstLine(s string) string {
	s, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if rest != "" {
		s += " …"
	}
	return s
}

// maxLine is how much of a message is shown, in characters.
const maxLine = 100

// line is the first line of a text without what a terminal might obey.
func line(s string) string {
	r := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, firstLine(s)))
	if len(r) > maxLine {
		r = append(r[:maxLine-1], '…')
	}
	return string(r)
}
