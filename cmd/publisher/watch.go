package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
)

type watchCmd struct {
	Session string `env:"COMPACTD_SESSION" default:"*" help:"Session to watch; * is all of the tenant (${default})."`
}

// Help has examples.
func (*watchCmd) Help() string {
	return `Examples:
  publisher watch                        # all sessions of the tenant
  publisher watch --session s1 --json

A row is an outcome: a history that was compacted, rewound or left as it is, a level that was crossed, an event that was refused or needs attention, a session that was forgotten; or the end of a session, which has no outcome and is not in the JSON.`
}

const flushTimeout = 10 * time.Second

// Run prints outcomes until ctx ends.
func (c *watchCmd) Run(ctx context.Context, f *flags) error {
	a := events.Address{Tenant: f.Tenant, Session: c.Session}
	if check := (events.Address{Tenant: f.Tenant, Session: strings.Replace(c.Session, "*", events.Unknown, 1)}); check.Validate() != nil {
		return a.Validate()
	}
	f.spared = []string{`"session.end.`} // a row less
	nc, _, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	heard := make(chan *nats.Msg, 1024)
	kinds := events.OutcomeKinds
	if !f.JSON {
		kinds = append([]events.Kind{events.KindEnd}, kinds...)
	}
	for _, k := range kinds {
		if _, err := nc.ChanSubscribe(events.Published(k, a), heard); err != nil {
			return err
		}
	}
	if err := nc.FlushTimeout(flushTimeout); err != nil { // from now on nothing is missed
		return err
	}
	if !f.JSON {
		fmt.Println(tableHead)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-heard:
			if err := c.print(m, f.JSON); err != nil {
				return err
			}
		}
	}
}

func (c *watchCmd) print(m *nats.Msg, asJSON bool) error {
	if asJSON {
		return printJSON(struct {
			Subject string     `json:"subject"`
			Event   events.Raw `json:"event"`
		}{m.Subject, m.Data})
	}
	k, a, err := events.ParsePublished(m.Subject)
	if err != nil {
		return err
	}
	if k == events.KindEnd { // of an agent, which may write anything
		if a.Validate() == nil {
			fmt.Println(row{kind: "ended", note: "its next turn begins a new one"}.line(a))
		}
		return nil
	}
	body, err := events.DecodeOutcome(k, m.Data)
	if err != nil {
		return err
	}
	_, err = fmt.Println(rowOf(body).line(a))
	return err
}
