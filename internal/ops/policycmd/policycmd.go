// Package policycmd is `publisher policy`: it sets, prints and lists the policies of tenants that running workers
// follow.
//
//	type flags struct {
//		Policy policycmd.Commands `cmd:""`
//	}
//	cmd.Bind(policycmd.Env{Tenant: "acme", Out: screen, Send: send})
//
// # Guarantees
//
// A policy that workers refuse is not set. A list has no policy, but the hash of each. Standard output has the policy
// alone, as it was written.
//
// # Concurrency
//
// Commands run one at a time.
//
// # On failure
//
// The policy stays as it was; the error is that of the worker.
package policycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"compactd/internal/events"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/term"
)

// Env is what the commands work on.
type Env struct {
	Tenant string
	Named  bool // Tenant was named; else it is the default
	JSON   bool
	Out    io.Writer
	Notes  io.Writer // gets hashes and warnings, as comments
	// Send sends a request to the workers and reads the answer.
	Send func(ctx context.Context, subject string, in, out any) error
}

// Commands are those of `publisher policy`.
type Commands struct {
	Set     setCmd     `cmd:"" help:"Set the policy of the tenant from a file, as that of one tenant in a policy file; all workers follow at once."`
	Remove  removeCmd  `cmd:"" help:"Remove the policy of the tenant, which then has that of the workers."`
	Get     getCmd     `cmd:"" help:"Print the policy that was set for the tenant."`
	History historyCmd `cmd:"" help:"List when the policy of the tenant was set, and its hashes."`
	Show    showCmd    `cmd:"" help:"Print the policy of a hash: of a revision, or of the config that an outcome names."`
}

type setCmd struct {
	File string `arg:"" help:"YAML or JSON; - is standard input."`
}

// Run sets a policy, and prints its hash.
func (c *setCmd) Run(ctx context.Context, env Env) error {
	read := func() ([]byte, error) { return os.ReadFile(c.File) }
	if c.File == "-" {
		read = func() ([]byte, error) { return io.ReadAll(io.LimitReader(os.Stdin, events.MaxPolicyBytes+1)) }
	}
	text, err := read()
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(text)) == "" {
		return errors.New(c.File + " is empty; policy remove removes the policy")
	}
	return env.set(ctx, string(text))
}

type removeCmd struct{}

// Run removes the policy.
func (*removeCmd) Run(ctx context.Context, env Env) error { return env.set(ctx, "") }

func (env Env) set(ctx context.Context, text string) error {
	var out events.PoliciesResponse
	if err := env.Send(ctx, events.SubjectPolicy, events.PolicyRequest{V: events.Version, Tenant: env.Tenant, Policy: text}, &out); err != nil {
		return err
	}
	env.note(ctx)
	return env.show(out, func() error {
		if out.Hash == "" {
			_, err := fmt.Fprintf(env.Out, "tenant %s has the policy of the workers\n", out.Tenant)
			return err
		}
		_, err := fmt.Fprintf(env.Out, "tenant %s has revision %s, from its next event on\n", out.Tenant, out.Hash)
		return err
	})
}

// note names what may be a mistake about the tenant.
func (env Env) note(ctx context.Context) {
	if !env.Named {
		fmt.Fprintf(env.Notes, "note: without --tenant it is the policy of the tenant %s, and of no other\n", env.Tenant)
	}
	in := events.SessionsRequest{V: events.Version, Tenant: env.Tenant, Limit: 1}
	for {
		var out events.SessionsResponse
		if err := env.Send(ctx, events.SubjectSessions, in, &out); err != nil || len(out.Sessions) > 0 {
			return // the policy is set in any case
		}
		if out.After == nil {
			break
		}
		in.After = *out.After
	}
	fmt.Fprintf(env.Notes, "note: the tenant %s has no session yet; is its name right? %s tenants lists those that have\n", env.Tenant, cli.Program("publisher"))
}

type getCmd struct{}

// Run prints the policy that was set last.
func (*getCmd) Run(ctx context.Context, env Env) error { return env.print(ctx, "") }

type showCmd struct {
	Hash string `arg:"" help:"16 hexadecimal digits, as history and outcomes have them."`
}

// Run prints the policy of a hash.
func (c *showCmd) Run(ctx context.Context, env Env) error { return env.print(ctx, c.Hash) }

func (env Env) print(ctx context.Context, hash string) error {
	out, err := env.get(ctx, hash)
	if err != nil {
		return err
	}
	return env.show(out, func() error {
		if out.Policy == "" {
			_, err := fmt.Fprintf(env.Notes, "# no policy was set for tenant %s: it has that of the workers, config %s\n", out.Tenant, out.Config)
			return err
		}
		if out.Problem != "" {
			fmt.Fprintf(env.Notes, "# left out by the worker that answered: %s\n", strings.ReplaceAll(out.Problem, "\n", "\n# "))
		}
		if slices.ContainsFunc(out.Revisions, func(r events.PolicyRevision) bool { return r.Hash == out.Hash }) {
			fmt.Fprintf(env.Notes, "# revision %s of tenant %s; the workers now have config %s\n", out.Hash, out.Tenant, out.Config)
		} else {
			fmt.Fprintf(env.Notes, "# all of the policy of tenant %s under config %s\n", out.Tenant, out.Hash)
		}
		_, err := fmt.Fprintln(env.Out, out.Policy)
		return err
	})
}

type historyCmd struct{}

// Run lists the revisions.
func (*historyCmd) Run(ctx context.Context, env Env) error {
	out, err := env.get(ctx, "")
	if err != nil {
		return err
	}
	return env.show(out, func() error {
		t := term.NewTable(env.Out, term.Column{Name: "SET"}, term.Column{Name: "REVISION"})
		for _, r := range out.Revisions {
			hash := r.Hash
			if hash == "" {
				hash = "removed"
			}
			t.Row(time.UnixMilli(r.Time).UTC().Format(time.DateTime), hash)
		}
		return t.Flush()
	})
}

func (env Env) get(ctx context.Context, hash string) (out events.PoliciesResponse, err error) {
	err = env.Send(ctx, events.SubjectPolicies, events.PoliciesRequest{V: events.Version, Tenant: env.Tenant, Hash: hash}, &out)
	return out, err
}

// show prints an answer for programs, or what table writes for people.
func (env Env) show(out events.PoliciesResponse, table func() error) error {
	if !env.JSON {
		return table()
	}
	data, err := events.Marshal(out)
	if err == nil {
		_, err = fmt.Fprintln(env.Out, string(data))
	}
	return err
}
