package main

import (
	"context"
	"fmt"
	"strings"

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
  publisher watch --session s1 --json`
}

// Run prints outcomes until ctx ends.
func (c *watchCmd) Run(ctx context.Context, f *flags) error {
	a := events.Address{Tenant: f.Tenant, Session: c.Session}
	if check := (events.Address{Tenant: f.Tenant, Session: strings.Replace(c.Session, "*", events.Unknown, 1)}); check.Validate() != nil {
		return a.Validate()
	}
	nc, _, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	heard := make(chan *nats.Msg, 1024)
	for _, k := range events.OutcomeKinds {
		if _, err := nc.ChanSubscribe(events.Published(k, a), heard); err != nil {
			return err
		}
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
	body, err := events.DecodeOutcome(k, m.Data)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%-32s %s\n", a, describe(body))
	return err
}

// describe says an outcome in one line.
func describe(body any) string {
	switch b := body.(type) {
	case *events.Compacted:
		if !b.Compacted {
			return fmt.Sprintf("not compacted: %s, %d tokens of %d", b.Code, b.TokensBefore, b.AvailableInput)
		}
		if b.RewoundTo != nil {
			return fmt.Sprintf("rewound to generation %d: generation %d through turn %d, %d → %d tokens", *b.RewoundTo, b.Generation, b.Through.Turn, b.TokensBefore, b.TokensAfter)
		}
		return fmt.Sprintf("compacted: generation %d through turn %d, %d → %d tokens by %v", b.Generation, b.Through.Turn, b.TokensBefore, b.TokensAfter, b.StagesUsed)
	case *events.BudgetChanged:
		return fmt.Sprintf("level %s: %d tokens of %d", b.Level, b.Budget.EstimatedInput, b.Budget.AvailableInput)
	case *events.Rejected:
		return fmt.Sprintf("rejected %s at %d: %s: %s. %s", b.Kind, b.Seq, b.Code, strings.TrimSuffix(b.Message, "."), b.Hint)
	case *events.Forgotten:
		return fmt.Sprintf("forgotten at %d: send the history with replaces_from 1 if the session is to go on", b.Seq)
	}
	return ""
}
