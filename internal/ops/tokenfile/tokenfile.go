package tokenfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"compactd/internal/events"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
	"compactd/internal/tokens"
)

// Env is what the commands work on.
type Env struct {
	File string    // of the tokens; "" where none is named
	Out  io.Writer // gets the list
}

// Commands are those of `worker token`.
type Commands struct {
	New    newCmd    `cmd:"" help:"Make a token, write its hash into the file of --agents-tokens, and print it once."`
	List   listCmd   `cmd:"" help:"List the tokens of the file: whose they are, and until when."`
	Revoke revokeCmd `cmd:"" help:"Remove a token from the file, and with it those that it has minted."`
}

// idDigits of a hash name a token.
const idDigits = 12

// errNoFile: no command can guess it.
var errNoFile = errors.New("no file of tokens is named: use --agents-tokens FILE or COMPACTD_AGENTS_TOKENS, as the worker has it")

type newCmd struct {
	Tenant  string       `placeholder:"NAME" help:"The tenant whose sessions the token may use."`
	Session string       `placeholder:"NAME" help:"One session of the tenant, as its agent named it: a token for its model over MCP."`
	Role    string       `default:"agent" enum:"agent,operator" help:"Rights of the token: agent for one tenant, operator for all (agent|operator, default ${default})."`
	Expires units.Period `name:"expires-in" placeholder:"TIME" help:"How long it is in force, such as 30d or 12h. Absent: until it is revoked."`
}

// Validate finds flags that exclude each other.
func (c *newCmd) Validate() error {
	operator := c.Role == string(tokens.RoleOperator)
	switch {
	case operator && c.Tenant+c.Session != "":
		return errors.New("--role operator is for all tenants: leave --tenant and --session out")
	case !operator && c.Tenant == "":
		return errors.New("--tenant is required, but for --role operator")
	case c.Expires < 0:
		return errors.New("--expires-in must be above 0")
	}
	return nil
}

// Run adds a line to the file, and prints the token.
func (c *newCmd) Run(env Env) error {
	if env.File == "" {
		return errNoFile
	}
	t := tokens.Token{Tenant: c.Tenant, Role: tokens.Role(c.Role)}
	switch {
	case t.Role == tokens.RoleOperator:
		t.Tenant = tokens.AnyTenant
	case c.Session != "":
		id, err := events.SessionID(c.Session)
		if err != nil {
			return fmt.Errorf("--session: %w", err)
		}
		t.Role, t.Session = tokens.RoleSession, id
	}
	if c.Expires > 0 {
		t.Expires = time.Now().Add(time.Duration(c.Expires))
	}
	secret, err := tokens.Add(env.File, t)
	if err != nil {
		return err
	}
	fmt.Println(secret)
	fmt.Fprintf(os.Stderr, "The token %s is shown once; %s has its hash. Workers read the file again within seconds.\n", tokens.HashOf(secret).String()[:idDigits], env.File)
	return nil
}

type listCmd struct {
	JSON bool `env:"COMPACTD_JSON" help:"Print JSON."`
}

// listed is a token of the file, for programs.
type listed struct {
	ID      string      `json:"id"`
	Tenant  string      `json:"tenant"`
	Session string      `json:"session,omitzero"` // its name
	Role    tokens.Role `json:"role"`
	Expires time.Time   `json:"expires,omitzero"`
	Expired bool        `json:"expired,omitzero"`
}

// Run prints the tokens.
func (c *listCmd) Run(env Env) error {
	if env.File == "" {
		return errNoFile
	}
	all, err := tokens.Read(env.File)
	if err != nil {
		return err
	}
	now := time.Now()
	list := make([]listed, len(all))
	for i, t := range all {
		list[i] = listed{t.Hash.String()[:idDigits], t.Tenant, events.SessionName(t.Session), t.Role, t.Expires, !t.Valid(now)}
	}
	if c.JSON {
		data, err := events.Marshal(map[string]any{"tokens": list})
		if err == nil {
			_, err = fmt.Println(string(data))
		}
		return err
	}
	table := term.NewTable(env.Out, term.Column{Name: "ID"}, term.Column{Name: "ROLE"}, term.Column{Name: "TENANT"}, term.Column{Name: "SESSION"}, term.Column{Name: "EXPIRES"})
	for _, t := range list {
		expires := "never"
		if t.Expired {
			expires = "expired"
		} else if !t.Expires.IsZero() {
			expires = "in " + units.Span(t.Expires.Sub(now))
		}
		table.Row(t.ID, t.Role, t.Tenant, t.Session, expires)
	}
	return table.Flush()
}

type revokeCmd struct {
	ID string `arg:"" help:"The id that list prints, or the first eight digits of it."`
}

// Run removes the line of a token.
func (c *revokeCmd) Run(env Env) error {
	if env.File == "" {
		return errNoFile
	}
	t, err := tokens.Remove(env.File, c.ID)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Out, "revoked %s, %s of %s; workers refuse it within seconds\n", t.Hash.String()[:idDigits], t.Role, t.Tenant)
	return err
}
