package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

type sessionsCmd struct {
	Limit int `default:"100" placeholder:"N" help:"Sessions to list (${default})."`
}

// Validate finds wrong usage that kong cannot find.
func (c *sessionsCmd) Validate() error {
	if c.Limit < 1 {
		return errors.New("--limit must be 1 or more")
	}
	return nil
}

// Run lists the sessions.
func (c *sessionsCmd) Run(ctx context.Context, f *flags, nc *nats.Conn) error {
	all, err := fullest(ctx, nc, f.Tenant, c.Limit)
	if err != nil {
		return err
	}
	return f.show(all, all.write)
}

// fleet is the fill level of a tenant's sessions.
type fleet struct {
	V      int    `json:"v"`
	Tenant string `json:"tenant"`
	// Total counts all sessions of the tenant, and Levels how many are at each level.
	Total  int                  `json:"total"`
	Levels map[events.Level]int `json:"levels"`
	// Rereads, Reruns and Cost are the sums over all sessions of the tenant.
	Rereads int64       `json:"rereads,omitzero"`
	Reruns  int64       `json:"reruns,omitzero"`
	Cost    events.Cost `json:"cost,omitzero"`
	// Sessions are the fullest, the fullest first.
	Sessions []events.SessionSummary `json:"sessions"`
}

// fullest reads all sessions of a tenant and keeps the fullest.
func fullest(ctx context.Context, nc *nats.Conn, tenant string, limit int) (*fleet, error) {
	all := &fleet{V: events.Version, Tenant: tenant, Levels: map[events.Level]int{}, Sessions: []events.SessionSummary{}}
	in := events.SessionsRequest{V: events.Version, Tenant: tenant, Limit: events.MaxSessions}
	for {
		var next events.SessionsResponse
		if err := request.SendOf(ctx, nc, events.SubjectSessions, tenant, in, &next); err != nil {
			return nil, err
		}
		all.add(next.Sessions, limit)
		if next.After == nil {
			return all, nil
		}
		in.After = *next.After
	}
}

// add keeps the fullest of those before and some more.
func (a *fleet) add(more []events.SessionSummary, limit int) {
	a.Total += len(more)
	for _, s := range more {
		a.Levels[s.Level]++
		a.Rereads += s.Rereads
		a.Reruns += s.Reruns
		a.Cost = a.Cost.Plus(s.Cost)
	}
	a.Sessions = append(a.Sessions, more...)
	slices.SortFunc(a.Sessions, func(x, y events.SessionSummary) int {
		return cmp.Or(cmp.Compare(fill(&y), fill(&x)), cmp.Compare(x.Session, y.Session))
	})
	a.Sessions = a.Sessions[:min(limit, len(a.Sessions))]
}

// fill is the share of the available input, in parts per million.
func fill(s *events.SessionSummary) int64 {
	return s.EstimatedInput * 1_000_000 / max(s.AvailableInput, 1)
}

// write prints it for people.
func (a *fleet) write(w io.Writer) error {
	t := term.NewTable(w, term.Column{Name: "SESSION", Min: 16}, term.Column{Name: "FULL", Right: true}, term.Column{Name: "INPUT", Right: true},
		term.Column{Name: "AVAILABLE", Right: true, Drop: 2}, term.Column{Name: "LEVEL", Style: level}, term.Column{Name: "TURNS", Right: true},
		term.Column{Name: "GENERATION", Right: true, Drop: 3}, term.Column{Name: "LAST TURN", Drop: 1})
	for _, x := range a.Sessions {
		t.Row(named.Name(x.Session), percent(fill(&x)), x.EstimatedInput, x.AvailableInput, x.Level, x.Turns, x.Generation,
			time.UnixMilli(x.LastTurn).UTC().Format(time.DateTime))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if a.Total == 0 {
		fmt.Fprintf(w, "(the tenant %s has no session; %s tenants lists those that have)\n", a.Tenant, cli.Program("publisher"))
	}
	if a.Total > len(a.Sessions) {
		fmt.Fprintf(w, "(the fullest of %s; --limit N lists more)\n", units.Count(a.Total, "session"))
	}
	if a.Total > 0 {
		fmt.Fprintln(w, "FULL is of the available input: the window without the part for the answer")
	}
	if a.Rereads+a.Reruns > 0 {
		fmt.Fprintf(w, "repeated after compactions: %s of files, %s\n", units.Count(a.Rereads, "read"), units.Count(a.Reruns, "other call"))
	}
	if a.Cost != (events.Cost{}) {
		money := units.PricedBy(a.Cost.Unpriced)
		fmt.Fprintf(w, "spent: %s on input, %s on summaries\nsaved on input: %s; lost on caches: %s\n",
			money(a.Cost.Input), money(a.Cost.Summaries), money(a.Cost.Saved), money(a.Cost.Lost))
	}
	return nil
}

// percent is a share in parts per million, in percent.
func percent(ppm int64) string { return fmt.Sprintf("%d %%", ppm/10_000) }

// level highlights the levels that need attention.
func level(value string) term.Style {
	switch events.Level(value) {
	case events.LevelOK:
		return term.Good
	case events.LevelInfo, events.LevelWarning:
		return term.Notice
	case events.LevelError, events.LevelCompacting, events.LevelBlocking:
		return term.Bad
	}
	return term.Plain
}

type tenantsCmd struct {
	Sort  string `default:"input" enum:"input,spent,sessions,saved,lost,summaries,rejected,last_turn,name" placeholder:"BY" help:"Order of the list (input|spent|sessions|saved|lost|summaries|rejected|last_turn|name, default ${default})."`
	Limit int64  `default:"100" placeholder:"N" help:"Tenants to list (${default})."`
}

// Validate finds wrong usage that kong cannot find.
func (c *tenantsCmd) Validate() error {
	if c.Limit < 1 {
		return errors.New("--limit must be 1 or more")
	}
	return nil
}

// Run lists the tenants.
func (c *tenantsCmd) Run(ctx context.Context, f *flags, nc *nats.Conn) error {
	all := tenantList{events.TenantsResponse{Tenants: []events.Tenant{}}}
	in := events.TenantsRequest{V: events.Version, Ranking: events.Ranking{Sort: events.Sort(c.Sort)}}
	for left := c.Limit; left > 0; left = c.Limit - int64(len(all.Tenants)) {
		in.Limit = min(left, events.MaxSessions)
		var next events.TenantsResponse
		if err := request.Send(ctx, nc, events.SubjectTenants, in, &next); err != nil {
			return err
		}
		next.Tenants = append(all.Tenants, next.Tenants...)
		if all.TenantsResponse = next; next.After == nil {
			break
		}
		in.After = *next.After
	}
	return f.show(all, all.write)
}

// month is the money that a tenant spent on summaries this month, of its budget.
func month(t *events.Tenant) string {
	spent := units.Dollars(t.Month)
	if t.MonthCents > 0 {
		spent += " of " + units.Dollars(t.MonthCents*events.NanoPerCent)
	}
	return spent
}

// tenantList is the tenants as they are printed.
type tenantList struct{ events.TenantsResponse }

// write prints it for people.
func (a *tenantList) write(w io.Writer) error {
	if err := a.table(w); err != nil {
		return err
	}
	if slices.ContainsFunc(a.Tenants, func(x events.Tenant) bool { return x.MonthCents > 0 }) {
		fmt.Fprintln(w, "MONTH is what summaries by models have cost since the first of the month (UTC), and the most that they may cost")
	}
	if more := a.Total - int64(len(a.Tenants)); more > 0 {
		fmt.Fprintf(w, "(of %s; --limit N lists more)\n", units.Count(int(a.Total), "tenant"))
	}
	return nil
}

func (a *tenantList) table(w io.Writer) error {
	t := term.NewTable(w, term.Column{Name: "TENANT", Min: 10}, term.Column{Name: "SESSIONS", Right: true}, term.Column{Name: "INPUT", Right: true},
		term.Column{Name: "TOKENS SAVED", Right: true}, term.Column{Name: "SPENT", Right: true}, term.Column{Name: "SAVED", Right: true, Drop: 1}, term.Column{Name: "LOST", Right: true, Drop: 1},
		term.Column{Name: "SUMMARIES", Right: true, Drop: 2}, term.Column{Name: "MONTH", Right: true, Drop: 2}, term.Column{Name: "REFUSED", Right: true}, term.Column{Name: "LAST TURN", Drop: 3})
	for _, x := range a.Tenants {
		money := units.PricedBy(x.Cost.Unpriced)
		t.Row(x.Tenant, x.Sessions, x.Input, x.Sums.Saved, money(x.Cost.Spent()), money(x.Cost.Saved), money(x.Cost.Lost), money(x.Cost.Summaries),
			month(&x), x.Rejected, time.UnixMilli(x.LastTurn).UTC().Format(time.DateTime))
	}
	return t.Flush()
}
