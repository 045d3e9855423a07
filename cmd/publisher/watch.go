package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
)

type watchCmd struct {
	Session string        `env:"COMPACTD_SESSION" default:"*" help:"Session to watch; * is all of the tenant (${default})."`
	Top     bool          `help:"Instead of outcomes show the fullest sessions of the tenant, again and again."`
	Every   time.Duration `default:"2s" placeholder:"TIME" help:"With --top: pause between two refreshes (${default})."`
	Times   int           `default:"0" placeholder:"N" help:"With --top: refresh N times, then end; 0 goes on until Ctrl-C (${default})."`
}

// Validate finds wrong usage that kong cannot find.
func (c *watchCmd) Validate() error {
	switch {
	case c.Every <= 0 || c.Times < 0:
		return errors.New("--every must be more than 0, --times 0 or more")
	case c.Top && c.Session != "*":
		return fmt.Errorf("--top shows all sessions of the tenant; %s stats --session S shows one", cli.Program("publisher"))
	case !c.Top && c.Times > 0:
		return errors.New("--times is for --top")
	}
	return nil
}

const flushTimeout = 10 * time.Second

// Run prints outcomes until ctx ends.
func (c *watchCmd) Run(ctx context.Context, f *flags) error {
	a := events.Address{Tenant: f.Tenant, Session: c.Session}
	if !events.ValidID(f.Tenant) {
		return a.Validate()
	}
	if c.Session != "*" {
		var s named.Session
		if err := s.UnmarshalText([]byte(c.Session)); err != nil {
			return err
		}
		a.Session = string(s)
	}
	f.optional = []string{`"session.end.`} // else a row is missing
	nc, _, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	received := make(chan *nats.Msg, 1024)
	kinds := events.OutcomeKinds
	if !f.JSON {
		kinds = append([]events.Kind{events.KindEnd}, kinds...)
	}
	for _, k := range kinds {
		if _, err := nc.ChanSubscribe(events.Published(k, a), received); err != nil {
			return err
		}
	}
	if err := nc.FlushTimeout(flushTimeout); err != nil { // from now on nothing is missed
		return err
	}
	if c.Top {
		return c.top(ctx, f, nc, received)
	}
	return c.rows(ctx, f, received)
}

// rows prints each outcome as it comes, and at last the totals.
func (c *watchCmd) rows(ctx context.Context, f *flags, received <-chan *nats.Msg) error {
	screen, sums := f.screen(), newTotals()
	var log *term.Log
	if !f.JSON {
		var err error
		if log, err = term.NewLog(screen, rowColumns()...); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			if f.JSON {
				return nil
			}
			return term.Wrapped(screen, "\n"+sums.String())
		case m := <-received:
			if f.JSON {
				if err := printMessage(m); err != nil {
					return err
				}
				continue
			}
			a, r, err := readRow(m)
			if err != nil {
				return err
			}
			if r == nil {
				continue
			}
			sums.add(a, r)
			if err := log.Row(r.cells(stored(m), a)...); err != nil {
				return err
			}
		}
	}
}

// printMessage prints an outcome for programs.
func printMessage(m *nats.Msg) error {
	return printJSON(struct {
		Subject string     `json:"subject"`
		Event   events.Raw `json:"event"`
	}{m.Subject, m.Data})
}

// readRow reads a message as a table row; nil for a message without one.
func readRow(m *nats.Msg) (events.Address, *tableRow, error) {
	k, a, err := events.ParsePublished(m.Subject)
	if err != nil {
		return a, nil, err
	}
	if k == events.KindEnd { // of an agent, which may write anything
		if err := a.Validate(); err != nil {
			return a, nil, nil //nolint:nilerr // the subject names no session
		}
		return a, &tableRow{kind: "ended", note: "its next turn begins a new one"}, nil
	}
	body, err := events.DecodeOutcome(k, m.Data)
	if err != nil {
		return a, nil, err
	}
	r := tableRowOf(body)
	return a, &r, nil
}

// stored is when the server stored an outcome; now for an event that is not stored.
func stored(m *nats.Msg) time.Time {
	if at, err := time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp")); err == nil {
		return at
	}
	return time.Now()
}

// top shows the fullest sessions until ctx ends, or N times.
func (c *watchCmd) top(ctx context.Context, f *flags, nc *nats.Conn, received <-chan *nats.Msg) error {
	screen, sums := f.screen(), newTotals()
	for n := 1; ; n++ {
		began := time.Now()
		all, err := fullest(ctx, nc, f.Tenant, topRows(screen))
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the user has ended it
		}
		if err != nil {
			return err
		}
		if f.JSON {
			err = printJSON(all)
		} else {
			err = drawTop(screen, all, sums)
		}
		if err != nil || n == c.Times {
			return err
		}
		// a fleet that takes long to list is listed less often
		if done, err := sums.follow(ctx, received, max(c.Every, 4*time.Since(began))); done || err != nil {
			return err
		}
	}
}

// topRows is how many sessions fit the screen.
func topRows(s *term.Screen) int {
	const others = 4 // the totals, the head, and the line of the cursor
	if s.Height > 0 {
		return max(s.Height-others, 1)
	}
	return 20
}

// drawTop writes the totals and the table, over those before on a terminal.
func drawTop(screen *term.Screen, all *fleet, sums *totals) error {
	var b strings.Builder
	out := *screen
	out.Writer = &b
	fmt.Fprintf(&b, "%s\n%s\n", term.Fit(screen, 0, all.levels()), term.Fit(screen, 0, sums.String()))
	t := term.NewTable(&out, term.Column{Name: "SESSION", Min: 16}, term.Column{Name: "FULL", Right: true}, term.Column{Name: "", Style: barStyle, Drop: 4},
		term.Column{Name: "INPUT", Right: true}, term.Column{Name: "AVAILABLE", Right: true, Drop: 2}, term.Column{Name: "LEVEL", Style: level},
		term.Column{Name: "TURNS", Right: true, Drop: 1}, term.Column{Name: "GEN", Right: true, Drop: 3}, term.Column{Name: "IDLE", Right: true})
	for _, x := range all.Sessions {
		t.Row(named.Name(x.Session), percent(fill(&x)), bar(fill(&x)), x.EstimatedInput, x.AvailableInput, x.Level, x.Turns, x.Generation, idle(x.LastTurn))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if screen.Terminal() {
		return screen.Redraw(b.String())
	}
	_, err := io.WriteString(screen, b.String())
	return err
}
