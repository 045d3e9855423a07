package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/replay"
)

type filesCmd struct {
	Session string `required:"" env:"COMPACTD_SESSION" help:"Session to ask about."`
}

// Help has examples.
func (*filesCmd) Help() string {
	return `Examples:
  publisher files --session s1`
}

// Run lists the files.
func (c *filesCmd) Run(ctx context.Context, f *flags) error {
	nc, a, err := f.about(ctx, c.Session)
	if err != nil {
		return err
	}
	defer nc.Close()
	all, err := files(ctx, nc, events.FilesRequest{V: events.Version, Tenant: a.Tenant, Session: a.Session})
	if err != nil {
		return err
	}
	return f.show(all, func(w io.Writer) error { return writeFiles(w, a, all) })
}

// files joins all pages. A file that moves while they are read, since a turn has
// used it, may be missing or stand twice.
func files(ctx context.Context, nc *nats.Conn, in events.FilesRequest) (*events.FilesResponse, error) {
	all := &events.FilesResponse{Pages: 1}
	for in.Page = 1; in.Page <= all.Pages; in.Page++ {
		var next events.FilesResponse
		err := replay.Ask(ctx, nc, events.OfTenant(events.SubjectFiles, in.Tenant), in, &next)
		if in.Page > 1 && isCode(err, events.CodeOutOfRange) {
			break // there are fewer now
		}
		if err != nil {
			return nil, err
		}
		next.Files, next.Unnamed = append(all.Files, next.Files...), all.Unnamed+next.Unnamed
		all = &next
	}
	all.Page, all.Pages = 1, 1
	return all, nil
}

func writeFiles(w io.Writer, a events.Address, r *events.FilesResponse) error {
	if !r.Known {
		return unknown(w, a)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FILE\tKIND\tTURNS\tREADS\tCHANGES\tRESTORABLE")
	for _, x := range r.Files {
		fmt.Fprintf(t, "%s\t%s\t%d to %d\t%d\t%d\t%t\n", line(x.Path), x.Kind, x.Turns[0], x.Turns[1], x.Reads, x.Changes, x.Restorable)
	}
	if r.Unnamed > 0 {
		fmt.Fprintf(t, "and %d whose path is no longer in the log\n", r.Unnamed)
	}
	return t.Flush()
}
