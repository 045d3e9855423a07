package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
	"compactd/internal/ops/workers"
)

type topCmd struct {
	Once  bool          `help:"Show it once."`
	Every time.Duration `default:"2s" placeholder:"TIME" help:"Pause between two refreshes (${default})."`
}

// Validate finds wrong usage that kong cannot find.
func (c *topCmd) Validate() error {
	if c.Every <= 0 {
		return errors.New("--every must be more than 0")
	}
	return nil
}

// overview is the state of a fleet, the fullest sessions and the largest tenants first.
type overview struct {
	V int `json:"v"`
	// Fleet and Tenants are for operators; a tenant's user has its sessions alone.
	Fleet    *events.FleetResponse   `json:"fleet,omitzero"`
	Tenants  *events.TenantsResponse `json:"tenants,omitzero"`
	Sessions events.SessionsResponse `json:"sessions"`
}

// Run shows it until ctx ends, or once. Only a terminal redraws it.
func (c *topCmd) Run(ctx context.Context, f *flags, nc *nats.Conn) error {
	denied, err := request.Denied(nc, events.SubjectFleet)
	if err != nil {
		return err
	}
	screen := f.screen()
	for {
		began := time.Now()
		o, err := look(ctx, nc, f.Tenant, !denied, screen)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the user ended it
		}
		if err != nil {
			return err
		}
		if f.JSON {
			err = term.JSON(o)
		} else {
			err = o.draw(screen)
		}
		if err != nil || c.Once {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(c.Every, 4*time.Since(began))): // a large fleet is requested less often
		}
	}
}

// fewTenants is the number of tenants that it shows.
const fewTenants = 5

// sessionRows is the number of sessions that fit the screen below the rest.
func (o *overview) sessionRows(s *term.Screen) int64 {
	if s.Height == 0 {
		return 20
	}
	rest := 12 + fewTenants // with heads, empty lines, notes on columns, and the line of the cursor
	if o.Fleet != nil {
		rest += len(o.Fleet.Workers)
	}
	return int64(max(s.Height-rest, 5))
}

// look requests what the console shows. An operator sees the sessions of all tenants, unless he
// names another than the default one.
func look(ctx context.Context, nc *nats.Conn, tenant string, operator bool, screen *term.Screen) (*overview, error) {
	o := &overview{V: events.Version}
	in := events.SessionsRequest{V: events.Version, Tenant: tenant, Ranking: events.Ranking{Sort: events.SortFill}}
	subject := events.OfTenant(events.SubjectSessions, tenant)
	if operator {
		o.Fleet, o.Tenants = &events.FleetResponse{}, &events.TenantsResponse{}
		if err := request.Send(ctx, nc, events.SubjectFleet, events.FleetRequest{V: events.Version}, o.Fleet); err != nil {
			return nil, err
		}
		largest := events.TenantsRequest{V: events.Version, Limit: fewTenants, Ranking: events.Ranking{Sort: events.SortInput}}
		if err := request.Send(ctx, nc, events.SubjectTenants, largest, o.Tenants); err != nil {
			return nil, err
		}
		subject = events.SubjectSessions
		if tenant == events.DefaultTenant {
			in.Tenant = events.AnyTenant
		}
	}
	in.Limit = o.sessionRows(screen)
	return o, request.Send(ctx, nc, subject, in, &o.Sessions)
}

// draw writes the tables, over those before on a terminal.
func (o *overview) draw(screen *term.Screen) error {
	var b strings.Builder
	out := *screen
	out.Writer = &b
	if err := o.write(&out); err != nil {
		return err
	}
	if screen.Terminal() {
		return screen.Redraw(b.String())
	}
	_, err := io.WriteString(screen, b.String())
	return err
}

func (o *overview) write(w io.Writer) error {
	fmt.Fprintln(w, term.Fit(w, 0, o.counts()))
	if o.Fleet != nil {
		fmt.Fprintln(w)
		if err := workers.Write(w, o.Fleet); err != nil {
			return err
		}
	}
	if o.Tenants != nil && o.Tenants.Total > 1 {
		fmt.Fprintln(w)
		all := tenantList{*o.Tenants}
		if err := all.table(w); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	t := term.NewTable(w, term.Column{Name: "SESSION", Min: 16}, term.Column{Name: "FULL", Right: true}, term.Column{Name: "", Style: barStyle, Drop: 4},
		term.Column{Name: "INPUT", Right: true}, term.Column{Name: "AVAILABLE", Right: true, Drop: 2}, term.Column{Name: "LEVEL", Style: level},
		term.Column{Name: "TURNS", Right: true, Drop: 1}, term.Column{Name: "GEN", Right: true, Drop: 3}, term.Column{Name: "IDLE", Right: true})
	for _, x := range o.Sessions.Sessions {
		name := named.Name(x.Session)
		if o.Sessions.Tenant == events.AnyTenant && x.Tenant != events.DefaultTenant {
			name = named.Show(events.Address{Tenant: x.Tenant, Session: x.Session})
		}
		t.Row(name, percent(fill(&x)), bar(fill(&x)), x.EstimatedInput, x.AvailableInput, x.Level, x.Turns, x.Generation, idle(x.LastTurn))
	}
	return t.Flush()
}

// counts are of all sessions, and of those at each level.
func (o *overview) counts() string {
	of := o.Sessions.Tenant
	if of == events.AnyTenant && o.Tenants != nil {
		of = units.Count(o.Tenants.Total, "tenant")
	}
	levels := []string{}
	for _, l := range slices.Backward(events.Levels) {
		if n := o.Sessions.Levels[l]; n > 0 {
			levels = append(levels, fmt.Sprintf("%d %s", n, l))
		}
	}
	return strings.TrimSuffix(units.Count(o.Sessions.Total, "session")+" of "+of+": "+strings.Join(levels, ", "), ": ")
}

const barLength = 10

// bar draws a share, in parts per million.
func bar(ppm int64) string {
	n := int(min(max(ppm, 0)*barLength/1_000_000, barLength))
	return strings.Repeat("█", n) + strings.Repeat("░", barLength-n)
}

// barStyle highlights the bar of a session that is nearly full.
func barStyle(value string) term.Style {
	switch n := strings.Count(value, "█"); {
	case n >= 8:
		return term.Bad
	case n >= 6:
		return term.Notice
	default:
		return term.Good
	}
}

// idle is the time since a session's last turn.
func idle(lastTurn int64) string {
	return units.Span(max(time.Since(time.UnixMilli(lastTurn)).Truncate(time.Second), 0))
}
