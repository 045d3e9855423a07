package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/events/dialect"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
)

type recallCmd struct {
	Session named.Session `required:"" env:"COMPACTD_SESSION" help:"Session to query."`
	Turn    int64         `placeholder:"N" required:"" xor:"what" help:"Turn whose messages to print."`
	Index   *int64        `placeholder:"N" help:"Message of the turn, from 0; absent prints all."`
	Text    string        `required:"" xor:"what" help:"Text to find, in upper or lower case."`
	Limit   int64         `default:"10" help:"Messages to find (${default})."`
}

// Run prints originals, or where a text is.
func (c *recallCmd) Run(ctx context.Context, f *flags, nc *nats.Conn) error {
	a := f.address(c.Session)
	in := events.RecallRequest{About: a.About(), Turn: c.Turn, Index: c.Index, Text: c.Text}
	if c.Text != "" {
		return c.search(ctx, f, nc, in)
	}
	whole, err := recall(ctx, nc, in)
	if err != nil {
		return err
	}
	return f.showKnown(whole.Known, a, whole, func(w io.Writer) error { return writeRecalled(w, whole) })
}

// recall joins all pages of a turn.
func recall(ctx context.Context, nc *nats.Conn, in events.RecallRequest) (*events.RecallResponse, error) {
	whole := &events.RecallResponse{}
	if err := request.SendOf(ctx, nc, events.SubjectRecall, in.Tenant, in, whole); err != nil {
		return nil, err
	}
	pages := whole.Pages
	whole.Pages = 1
	for in.Page = 2; in.Page <= pages; in.Page++ {
		var next events.RecallResponse
		if err := request.SendOf(ctx, nc, events.SubjectRecall, in.Tenant, in, &next); err != nil {
			return nil, err
		}
		if next.Seq != whole.Seq {
			return nil, request.ErrMoving // another turn has this number now
		}
		whole.Messages = append(whole.Messages, next.Messages...)
	}
	return whole, nil
}

// search sends requests, each from where the last answer ended, until there are enough.
func (c *recallCmd) search(ctx context.Context, f *flags, nc *nats.Conn, in events.RecallRequest) error {
	var all events.SearchResponse
	for in.Limit = c.Limit; ; in.Limit = c.Limit - int64(len(all.Hits)) {
		var next events.SearchResponse
		if err := request.SendOf(ctx, nc, events.SubjectRecall, in.Tenant, in, &next); err != nil {
			return err
		}
		next.Hits, next.Gone = append(all.Hits, next.Hits...), all.Gone+next.Gone
		if all = next; all.Before == nil || int64(len(all.Hits)) >= c.Limit {
			break
		}
		in.Before, in.Ancestor = all.Before, all.Ancestor
	}
	return f.showKnown(all.Known, in.Address(), all, func(w io.Writer) error { return writeHits(w, &all) })
}

// writeRecalled writes the texts of messages as they are.
func writeRecalled(w io.Writer, r *events.RecallResponse) error {
	messages, err := r.Format.ReadAll(r.Messages)
	if err != nil {
		return fmt.Errorf("read the messages: %w", err)
	}
	for i, m := range messages {
		fmt.Fprintf(w, "%sturn %d, message %d, %s:\n", events.InAncestor(r.Ancestor), r.Turn, r.Index+int64(i), m.Role)
		for _, p := range m.Parts {
			if _, err := fmt.Fprintln(w, whole(&p)); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole is the text of a part, without control characters.
func whole(p *dialect.Part) string {
	text := p.Text
	switch p.Kind {
	case dialect.PartCall:
		text = fmt.Sprintf("call %s %s", p.Tool, p.Args)
	case dialect.PartImage:
		text = "(image)"
	case dialect.PartOther:
		text = string(p.Raw)
	case dialect.PartText, dialect.PartResult, dialect.PartThinking:
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// writeHits writes a line for each message found.
func writeHits(w io.Writer, s *events.SearchResponse) error {
	t := term.NewTable(w, term.Column{}, term.Column{}, term.Column{}, term.Column{Min: 20})
	for _, h := range s.Hits {
		t.Row(events.InAncestor(h.Ancestor)+fmt.Sprintf("turn %d", h.Turn), fmt.Sprintf("message %d", h.Index), h.Role, h.Excerpt)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	switch {
	case s.Before != nil:
		fmt.Fprintf(w, "and maybe more before %sturn %d, message %d: try a larger --limit\n", events.InAncestor(s.Ancestor), s.Before.Turn, s.Before.Index)
	case len(s.Hits) == 0:
		fmt.Fprintln(w, "not found")
	}
	if s.Gone > 0 {
		fmt.Fprintf(w, "%d turns are no longer in the log\n", s.Gone)
	}
	return nil
}
