package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

type watchCmd struct {
	Session string `env:"COMPACTD_SESSION" default:"*" help:"Session to watch; * is all of the tenant (${default})."`
}

const flushTimeout = 10 * time.Second

// Run prints outcomes until ctx ends.
func (c *watchCmd) Run(ctx context.Context, f *flags) error {
	a := events.Address{Tenant: f.Tenant, Session: c.Session}
	if c.Session != "*" {
		var s named.Session
		if err := s.UnmarshalText([]byte(c.Session)); err != nil {
			return err
		}
		a.Session = string(s)
	}
	f.optional = []string{`"session.end.`} // else a row is missing
	nc, err := f.connect(ctx)
	if err != nil {
		return err
	}
	kinds := events.OutcomeKinds
	if !f.JSON {
		kinds = append([]events.Kind{events.KindEnd}, kinds...)
	}
	received, err := subscribe(nc, a, kinds)
	if err != nil {
		return err
	}
	if err := nc.FlushTimeout(flushTimeout); err != nil { // from now on nothing is missed
		return err
	}
	return c.rows(ctx, f, received)
}

// rows prints each outcome as it comes, and at last the totals.
func (c *watchCmd) rows(ctx context.Context, f *flags, received <-chan *nats.Msg) error {
	screen, sums := f.screen(), &totals{began: time.Now(), sessions: map[events.Address]bool{}, kinds: map[string]int64{}}
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
	return term.JSON(struct {
		Subject string    `json:"subject"`
		Event   codec.Raw `json:"event"`
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

// stored is the time at which the server stored an outcome; now for an event that is not stored.
func stored(m *nats.Msg) time.Time {
	if at, err := time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp")); err == nil {
		return at
	}
	return time.Now()
}

// totals count the outcomes since a watch began.
type totals struct {
	began    time.Time
	sessions map[events.Address]bool
	kinds    map[string]int64
	saved    int64 // tokens, by compactions
}

func (t *totals) add(a events.Address, r *tableRow) {
	t.sessions[a] = true
	t.kinds[r.kind]++
	if r.kind == "compacted" {
		t.saved += r.input - r.after
	}
}

// String writes them in one line.
func (t *totals) String() string {
	return fmt.Sprintf("in %s: outcomes of %s; %s, %s saved; %s, %s", units.Span(max(time.Since(t.began), time.Second)), units.Count(len(t.sessions), "session"),
		units.Count(t.kinds["compacted"], "compaction"), units.Count(t.saved, "token"),
		units.Count(t.kinds["level"], "level")+" crossed", units.Count(t.kinds["rejected"], "event")+" rejected")
}
