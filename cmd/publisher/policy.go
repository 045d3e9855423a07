package main

import (
	"cmp"
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

// policyCmd sets, prints and lists the policies of tenants. One that workers refuse is not set. Standard output has the
// policy alone, as it was written; hashes and warnings go to standard error.
type policyCmd struct {
	Set     setPolicyCmd    `cmd:"" help:"Set the policy of the tenant from a file, as that of one tenant in a policy file; all workers follow at once."`
	Remove  removePolicyCmd `cmd:"" help:"Remove the policy of the tenant, which then has that of the workers."`
	Get     getPolicyCmd    `cmd:"" help:"Print the policy that was set for the tenant."`
	History revisionsCmd    `cmd:"" help:"List when the policy of the tenant was set, and its hashes."`
	Show    showPolicyCmd   `cmd:"" help:"Print the policy of a hash: of a revision, or of the config that an outcome names."`
}

type setPolicyCmd struct {
	File string `arg:"" help:"YAML or JSON; - is standard input."`
}

// Run sets a policy, and prints its hash.
func (c *setPolicyCmd) Run(ctx context.Context, f *flags) error {
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
	return f.setPolicy(ctx, string(text))
}

type removePolicyCmd struct{}

// Run removes the policy.
func (*removePolicyCmd) Run(ctx context.Context, f *flags) error { return f.setPolicy(ctx, "") }

func (f *flags) setPolicy(ctx context.Context, text string) error {
	var out events.PoliciesResponse
	if err := f.send(ctx, events.SubjectPolicy, events.PolicyRequest{V: events.Version, Tenant: f.Tenant, Policy: text}, &out); err != nil {
		return err
	}
	f.notePolicy(ctx)
	return f.show(out, func(w io.Writer) error {
		if out.Hash == "" {
			_, err := fmt.Fprintf(w, "tenant %s has the policy of the workers\n", out.Tenant)
			return err
		}
		_, err := fmt.Fprintf(w, "tenant %s has revision %s, from its next event on\n", out.Tenant, out.Hash)
		return err
	})
}

// notePolicy prints what may be a mistake about the tenant.
func (f *flags) notePolicy(ctx context.Context) {
	if !f.tenantNamed {
		fmt.Fprintf(os.Stderr, "note: without --tenant it is the policy of the tenant %s, and of no other\n", f.Tenant)
	}
	in := events.SessionsRequest{V: events.Version, Tenant: f.Tenant, Limit: 1}
	for {
		var out events.SessionsResponse
		if err := f.send(ctx, events.SubjectSessions, in, &out); err != nil || len(out.Sessions) > 0 {
			return // the policy is set in any case
		}
		if out.After == nil {
			break
		}
		in.After = *out.After
	}
	fmt.Fprintf(os.Stderr, "note: the tenant %s has no session yet; is its name right? %s tenants lists those that have\n", f.Tenant, cli.Program("publisher"))
}

type getPolicyCmd struct{}

// Run prints the policy that was set last.
func (*getPolicyCmd) Run(ctx context.Context, f *flags) error { return f.printPolicy(ctx, "") }

type showPolicyCmd struct {
	Hash string `arg:"" help:"16 hexadecimal digits, as history and outcomes have them."`
}

// Run prints the policy of a hash.
func (c *showPolicyCmd) Run(ctx context.Context, f *flags) error { return f.printPolicy(ctx, c.Hash) }

func (f *flags) printPolicy(ctx context.Context, hash string) error {
	out, err := f.getPolicy(ctx, hash)
	if err != nil {
		return err
	}
	return f.show(out, func(w io.Writer) error {
		if out.Policy == "" {
			_, err := fmt.Fprintf(os.Stderr, "# no policy was set for tenant %s: it has that of the workers, config %s\n", out.Tenant, out.Config)
			return err
		}
		if out.Problem != "" {
			fmt.Fprintf(os.Stderr, "# left out by the worker that answered: %s\n", strings.ReplaceAll(out.Problem, "\n", "\n# "))
		}
		if slices.ContainsFunc(out.Revisions, func(r events.PolicyRevision) bool { return r.Hash == out.Hash }) {
			fmt.Fprintf(os.Stderr, "# revision %s of tenant %s; the workers now have config %s\n", out.Hash, out.Tenant, out.Config)
		} else {
			fmt.Fprintf(os.Stderr, "# all of the policy of tenant %s under config %s\n", out.Tenant, out.Hash)
		}
		_, err := fmt.Fprintln(w, out.Policy)
		return err
	})
}

type revisionsCmd struct{}

// Run lists the revisions.
func (*revisionsCmd) Run(ctx context.Context, f *flags) error {
	out, err := f.getPolicy(ctx, "")
	if err != nil {
		return err
	}
	return f.show(out, func(w io.Writer) error {
		t := term.NewTable(w, term.Column{Name: "SET"}, term.Column{Name: "REVISION"})
		for _, r := range out.Revisions {
			t.Row(time.UnixMilli(r.Time).UTC().Format(time.DateTime), cmp.Or(r.Hash, "removed"))
		}
		return t.Flush()
	})
}

func (f *flags) getPolicy(ctx context.Context, hash string) (out events.PoliciesResponse, err error) {
	err = f.send(ctx, events.SubjectPolicies, events.PoliciesRequest{V: events.Version, Tenant: f.Tenant, Hash: hash}, &out)
	return out, err
}
