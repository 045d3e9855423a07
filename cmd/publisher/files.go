package main

import (
	"context"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
)

type filesCmd struct {
	Session named.Session `required:"" env:"COMPACTD_SESSION" help:"Session to query."`
}

// Run lists the files.
func (c *filesCmd) Run(ctx context.Context, f *flags, nc *nats.Conn) error {
	a := f.address(c.Session)
	all, err := files(ctx, nc, events.FilesRequest{About: a.About()})
	if err != nil {
		return err
	}
	return f.showKnown(all.Known, a, all, func(w io.Writer) error { return writeFiles(w, all) })
}

// files joins all pages. A file that moves while they are read, since a turn has
// used it, may be missing or listed twice.
func files(ctx context.Context, nc *nats.Conn, in events.FilesRequest) (*events.FilesResponse, error) {
	all := &events.FilesResponse{Pages: 1}
	for in.Page = 1; in.Page <= all.Pages; in.Page++ {
		var next events.FilesResponse
		err := request.SendOf(ctx, nc, events.SubjectFiles, in.Tenant, in, &next)
		if in.Page > 1 && request.Refused(err, events.CodeOutOfRange) {
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

func writeFiles(w io.Writer, r *events.FilesResponse) error {
	t := term.NewTable(w, term.Column{Name: "FILE", Min: 20}, term.Column{Name: "KIND"}, term.Column{Name: "TURNS"},
		term.Column{Name: "READS", Right: true}, term.Column{Name: "CHANGES", Right: true}, term.Column{Name: "RESTORABLE", Drop: 1})
	for _, x := range r.Files {
		t.Row(x.Path, x.Kind, fmt.Sprintf("%d to %d", x.Turns[0], x.Turns[1]), x.Reads, x.Changes, x.Restorable)
	}
	if err := t.Flush(); err != nil || r.Unnamed == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "and %d whose path is no longer in the log\n", r.Unnamed)
	return err
}
