// Package auditcmd is `publisher audit`: it prints the audit log.
//
//	type flags struct {
//		Audit auditcmd.Command `cmd:""`
//	}
//	cmd.Bind(auditcmd.Env{Open: open, Out: screen})
//
// # Concurrency
//
// The command runs once.
//
// # On failure
//
// Entries that were printed before an error stay printed. A server without an audit log has no entries.
package auditcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
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

// Env is what the command works on.
type Env struct {
	Open func(ctx context.Context) (*nats.Conn, jetstream.JetStream, error)
	JSON bool
	Out  io.Writer
}

// Command is `publisher audit`.
type Command struct {
	Of     string       `placeholder:"TENANT" help:"Entries of one tenant. Absent: of all."`
	Action string       `placeholder:"NAME" help:"Entries of one kind, such as context, recall, forget, policy or token_made."`
	Since  units.Period `placeholder:"TIME" help:"Entries of the last time, such as 7d or 24h. Absent: all."`
}

// Validate finds a kind that no entry has.
func (c *Command) Validate() error {
	if c.Action != "" && !slices.Contains(events.AuditActions, c.Action) {
		return fmt.Errorf("--action %s is no kind of entry; name one of %s", c.Action, strings.Join(events.AuditActions, ", "))
	}
	return nil
}

// result is the policy that was set, or why it was refused.
func result(e events.AuditEntry) string {
	switch {
	case e.Code != "":
		return "refused: " + string(e.Code)
	case e.Action == "policy":
		return cmp.Or(e.Hash, "removed")
	}
	return ""
}

// Run prints the entries, the oldest first.
func (c *Command) Run(ctx context.Context, env Env) error {
	nc, js, err := env.Open(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	s := audit.Selection{Action: c.Action, Tenant: c.Of}
	if c.Since > 0 {
		s.Since = time.Now().Add(-time.Duration(c.Since))
	}
	t := term.NewTable(env.Out, term.Column{Name: "TIME"}, term.Column{Name: "ACTION"}, term.Column{Name: "CALLER"}, term.Column{Name: "FROM", Drop: 1},
		term.Column{Name: "TENANT"}, term.Column{Name: "SESSION", Min: 10}, term.Column{Name: "RESULT", Drop: 2})
	err = audit.Read(ctx, js, s, func(e events.AuditEntry) error {
		if !env.JSON {
			t.Row(time.UnixMilli(e.Time).UTC().Format(time.DateTime), e.Action, e.Caller, e.From, e.Tenant, named.Name(e.Session), result(e))
			return nil
		}
		data, err := events.Marshal(e)
		if err == nil {
			_, err = fmt.Fprintln(env.Out, string(data))
		}
		return err
	})
	if err != nil || env.JSON {
		return err
	}
	return t.Flush()
}
