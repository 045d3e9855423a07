package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"compactd/internal/events"
	"compactd/internal/replay"
)

type sessionsCmd struct {
	Limit int64 `default:"100" placeholder:"N" help:"Sessions to list (${default})."`
}

// Help has examples.
func (*sessionsCmd) Help() string {
	return `Examples:
  publisher sessions
  publisher sessions --tenant acme --limit 1000 --json`
}

// Validate finds wrong usage that kong cannot know of.
func (c *sessionsCmd) Validate() error {
	if c.Limit < 1 {
		return errors.New("--limit must be 1 or more")
	}
	return nil
}

// Run lists the sessions.
func (c *sessionsCmd) Run(ctx context.Context, f *flags) error {
	nc, a, err := f.about(ctx, events.Unknown)
	if err != nil {
		return err
	}
	defer nc.Close()
	all := events.SessionsResponse{V: events.Version, Tenant: a.Tenant, Sessions: []events.SessionSummary{}}
	in := events.SessionsRequest{V: events.Version, Tenant: a.Tenant}
	for {
		in.Limit = min(c.Limit-int64(len(all.Sessions)), events.MaxSessions)
		var next events.SessionsResponse
		if err := replay.Ask(ctx, nc, events.OfTenant(events.SubjectSessions, a.Tenant), in, &next); err != nil {
			return err
		}
		all.Sessions, all.After = append(all.Sessions, next.Sessions...), next.After
		if next.After == nil || int64(len(all.Sessions)) >= c.Limit {
			break
		}
		in.After = *next.After
	}
	return f.show(all, func(w io.Writer) error { return writeSessions(w, &all) })
}

func writeSessions(w io.Writer, s *events.SessionsResponse) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SESSION\tTURNS\tINPUT\tAVAILABLE\tLEVEL\tGENERATION\tLAST TURN")
	for _, x := range s.Sessions {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%d\t%s\n", x.Session, x.Turns, x.EstimatedInput, x.AvailableInput, x.Level, x.Generation,
			time.UnixMilli(x.LastTurn).UTC().Format(time.DateTime))
	}
	if s.After != nil {
		fmt.Fprintln(t, "and maybe more: ask with a larger --limit")
	}
	return t.Flush()
}
