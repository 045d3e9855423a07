package main

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

// tokenCmd writes, lists and removes lines of the file of --agents-tokens. A token is printed once, when it is made, on
// a line of its own; a list has the first twelve digits of each hash.
type tokenCmd struct {
	New    newTokenCmd    `cmd:"" help:"Make a token, write its hash into the file of --agents-tokens, and print it once."`
	List   listTokensCmd  `cmd:"" help:"List the tokens of the file: whose they are, and until when."`
	Revoke revokeTokenCmd `cmd:"" help:"Remove a token from the file, and with it those that it has minted."`
}

// idDigits of a hash name a token.
const idDigits = 12

// errNoFile: no command can guess it.
var errNoFile = errors.New("no file of tokens is named: use --agents-tokens FILE or COMPACTD_AGENTS_TOKENS, as the worker has it")

type newTokenCmd struct {
	Tenant  string       `placeholder:"NAME" help:"The tenant whose sessions the token may use."`
	Session string       `placeholder:"NAME" help:"One session of the tenant, as its agent named it: a token for its model over MCP."`
	Role    string       `default:"agent" enum:"agent,operator" help:"Rights of the token: agent for one tenant, operator for all (agent|operator, default ${default})."`
	Expires units.Period `name:"expires-in" placeholder:"TIME" help:"How long it is in force, such as 30d or 12h. Absent: until it is revoked."`
}

// Validate finds flags that exclude each other.
func (c *newTokenCmd) Validate() error {
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
func (c *newTokenCmd) Run(f *flags) error {
	if f.AgentsTokens == "" {
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
	secret, err := tokens.Add(f.AgentsTokens, t)
	if err != nil {
		return err
	}
	fmt.Println(secret)
	fmt.Fprintf(os.Stderr, "The token %s is shown once; %s has its hash. Workers read the file again within seconds.\n", tokens.HashOf(secret).String()[:idDigits], f.AgentsTokens)
	return nil
}

type listTokensCmd struct {
	JSON bool `env:"COMPACTD_JSON" help:"Print JSON."`
}

// Run prints the tokens.
func (c *listTokensCmd) Run(f *flags) error {
	if f.AgentsTokens == "" {
		return errNoFile
	}
	all, err := tokens.Read(f.AgentsTokens)
	if err != nil {
		return err
	}
	list := tokenList{make([]listedToken, len(all))}
	for i, t := range all {
		list.Tokens[i] = listedToken{t.Hash.String()[:idDigits], t.Tenant, events.SessionName(t.Session), t.Role, t.Expires, !t.Valid(time.Now())}
	}
	return f.show(c.JSON, list)
}

// tokenList is what the command prints.
type tokenList struct {
	Tokens []listedToken `json:"tokens"`
}

type listedToken struct {
	ID      string      `json:"id"`
	Tenant  string      `json:"tenant"`
	Session string      `json:"session,omitzero"` // its name
	Role    tokens.Role `json:"role"`
	Expires time.Time   `json:"expires,omitzero"`
	Expired bool        `json:"expired,omitzero"`
}

// Write prints it for people.
func (l tokenList) Write(w io.Writer) error {
	table := term.NewTable(w, term.Column{Name: "ID"}, term.Column{Name: "ROLE"}, term.Column{Name: "TENANT"}, term.Column{Name: "SESSION"}, term.Column{Name: "EXPIRES"})
	for _, t := range l.Tokens {
		expires := "never"
		if t.Expired {
			expires = "expired"
		} else if !t.Expires.IsZero() {
			expires = "in " + units.Span(time.Until(t.Expires))
		}
		table.Row(t.ID, t.Role, t.Tenant, t.Session, expires)
	}
	return table.Flush()
}

type revokeTokenCmd struct {
	ID string `arg:"" help:"The id that list prints, or the first eight digits of it."`
}

// Run removes the line of a token.
func (c *revokeTokenCmd) Run(f *flags) error {
	if f.AgentsTokens == "" {
		return errNoFile
	}
	t, err := tokens.Remove(f.AgentsTokens, c.ID)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("revoked %s, %s of %s; workers refuse it within seconds\n", t.Hash.String()[:idDigits], t.Role, t.Tenant)
	return err
}
