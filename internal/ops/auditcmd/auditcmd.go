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
	"context"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/trail"
	"compactd/internal/events"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
)

// Env is what the command works on.
type Env struct {
	Open func(ctx context.Context) (*nats.Conn, jetstream.JetStream, error)
	JSON bool
	Out  io.Writer
}

// Command is `publisher audit`.
type Command struct {
	Of     string        `placeholder:"TENANT" help:"Entries of one tenant. Absent: of all."`
	Action string        `placeholder:"NAME" help:"Entries of one kind, such as context, recall, compact, rewind, forget, policy, token_made or token_revoked."`
	Since  time.Duration `placeholder:"TIME" help:"Entries of the last hours, such as 24h. Absent: all."`
}

// Run prints the entries, the oldest first.
func (c *Command) Run(ctx context.Context, env Env) error {
	nc, js, err := env.Open(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	s := trail.Selection{Action: c.Action, Tenant: c.Of}
	if c.Since > 0 {
		s.Since = time.Now().Add(-c.Since)
	}
	t := term.NewTable(env.Out, term.Column{Name: "TIME"}, term.Column{Name: "ACTION"}, term.Column{Name: "CALLER"}, term.Column{Name: "FROM", Drop: 1},
		term.Column{Name: "TENANT"}, term.Column{Name: "SESSION", Min: 10})
	err = trail.Read(ctx, js, s, func(e events.AuditEntry) error {
		if !env.JSON {
			t.Row(time.UnixMilli(e.Time).UTC().Format(time.DateTime), e.Action, e.Caller, e.From, e.Tenant, named.Name(e.Session))
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
