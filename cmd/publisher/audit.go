package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/audit"
	"compactd/internal/events"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

type auditCmd struct {
	Of     string       `placeholder:"TENANT" help:"Entries of one tenant. Absent: of all."`
	Action string       `placeholder:"NAME" help:"Entries of one kind, such as context, recall, forget, policy or token_made."`
	Since  units.Period `placeholder:"TIME" help:"Entries of the last time, such as 7d or 24h. Absent: all."`
}

// Validate finds a kind that no entry has.
func (c *auditCmd) Validate() error {
	if c.Action != "" && !slices.Contains(events.AuditActions, c.Action) {
		return fmt.Errorf("--action %s is no kind of entry; name one of %s", c.Action, strings.Join(events.AuditActions, ", "))
	}
	return nil
}

// auditResult is the policy that was set, or why it was refused.
func auditResult(e events.AuditEntry) string {
	switch {
	case e.Code != "":
		return "refused: " + string(e.Code)
	case e.Action == "policy":
		return cmp.Or(e.Hash, "removed")
	}
	return ""
}

// Run prints the entries, the oldest first. A server without an audit log has none.
func (c *auditCmd) Run(ctx context.Context, f *flags, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	s := audit.Selection{Action: c.Action, Tenant: c.Of}
	if c.Since > 0 {
		s.Since = time.Now().Add(-time.Duration(c.Since))
	}
	t := term.NewTable(f.screen(), term.Column{Name: "TIME"}, term.Column{Name: "ACTION"}, term.Column{Name: "CALLER"}, term.Column{Name: "FROM", Drop: 1},
		term.Column{Name: "TENANT"}, term.Column{Name: "SESSION", Min: 10}, term.Column{Name: "RESULT", Drop: 2})
	err = audit.Read(ctx, js, s, func(e events.AuditEntry) error {
		if f.JSON {
			return term.JSON(e)
		}
		t.Row(time.UnixMilli(e.Time).UTC().Format(time.DateTime), e.Action, e.Caller, e.From, e.Tenant, named.Name(e.Session), auditResult(e))
		return nil
	})
	if err != nil || f.JSON {
		return err
	}
	return t.Flush()
}
