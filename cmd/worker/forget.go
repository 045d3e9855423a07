package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/mattn/go-isatty"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"compactd/internal/broker/erase"
	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

type forgetCmd struct {
	Tenant  string        `arg:"" help:"Tenant of the session."`
	Session named.Session `arg:"" optional:"" help:"Session to erase."`
	All     bool          `help:"Erase all sessions of the tenant, also those that have ended, and its policy. After an interruption run it again: it continues."`
	Yes     bool          `help:"Erase without confirmation; it cannot be undone."`
	Timeout time.Duration `default:"1m" placeholder:"TIME" help:"How long to wait until the erasure of a session is confirmed (${default})."`
	JSON    bool          `env:"COMPACTD_JSON" help:"Print JSON."`
}

// Validate requires --yes where no terminal can confirm.
func (c *forgetCmd) Validate() error {
	switch {
	case c.Tenant == "":
		return nil // kong names what is missing
	case c.All == (c.Session != ""):
		return errors.New("name a session, or --all for those of the tenant")
	}
	if !events.ValidID(c.Tenant) {
		return fmt.Errorf("the tenant %s is not 1 to %d of A-Z a-z 0-9 _ -", c.Tenant, events.MaxTenantLen)
	}
	if !c.Yes && !isatty.IsTerminal(os.Stdin.Fd()) {
		return errors.New("an erasure cannot be undone: --yes confirms it")
	}
	return nil
}

// errNotConfirmed: the name of the session was not typed.
var errNotConfirmed = errors.New("nothing was erased")

// Run erases a session and prints what was erased, once that is confirmed.
func (c *forgetCmd) Run(ctx context.Context, f *flags) error {
	a := events.Address{Tenant: c.Tenant, Session: string(c.Session)}
	what, name := "Everything of "+named.Show(a), named.Name(a.Session)
	if c.All {
		what, name = "Every session of "+c.Tenant, c.Tenant
	}
	if !c.Yes && !confirmed(ctx, os.Stdin, os.Stderr, fmt.Sprintf("%s is erased; this cannot be undone. Type its name, %s, to confirm: ", what, name), name) {
		return errNotConfirmed
	}
	return f.withLog(ctx, func(js jetstream.JetStream) error {
		if c.All {
			return c.tenant(ctx, f, js)
		}
		return c.session(ctx, f, js, a)
	})
}

// session erases one session, and prints what was erased.
func (c *forgetCmd) session(ctx context.Context, f *flags, js jetstream.JetStream, a events.Address) error {
	done, err := c.erase(ctx, js, a)
	if err != nil {
		return err
	}
	return cmp.Or(f.show(c.JSON, erased{a, done}), unless(done.Events+done.Outcomes > 0, &unknownError{a}))
}

// erase erases a session, and waits until that is confirmed.
func (c *forgetCmd) erase(ctx context.Context, js jetstream.JetStream, a events.Address) (*events.Erased, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return erase.Request(ctx, js, a, "forget-"+uuid.NewString())
}

// erasedAtOnce bounds the sessions erased at once: a partition erases one after the other.
const erasedAtOnce = 8

// tenant erases all sessions of the tenant, and then its policy. After an error the next run finds
// the rest.
func (c *forgetCmd) tenant(ctx context.Context, f *flags, js jetstream.JetStream) error {
	all, err := erase.Sessions(ctx, js, erase.Any, c.Tenant)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return &unknownError{events.Address{Tenant: c.Tenant}}
	}
	bar := term.NewBar(os.Stderr, "erasing", int64(len(all)), true)
	defer bar.Done()
	sum := erasedTenant{V: events.Version, Tenant: c.Tenant}
	var mu sync.Mutex // guards sum
	g, erasing := errgroup.WithContext(ctx)
	g.SetLimit(erasedAtOnce)
	for _, a := range all {
		g.Go(func() error {
			done, err := c.erase(erasing, js, a)
			if err != nil {
				return fmt.Errorf("%s: %w", named.Show(a), err)
			}
			mu.Lock()
			defer mu.Unlock()
			sum.Sessions, sum.Events, sum.Outcomes, sum.Files = sum.Sessions+1, sum.Events+done.Events, sum.Outcomes+done.Outcomes, sum.Files+done.Files
			bar.Add(1)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		bar.Done()
		return fmt.Errorf("%d of %s are erased, and the same command goes on: %w", sum.Sessions, units.Count(len(all), "session"), err)
	}
	bar.Done()
	var left events.PoliciesResponse
	err = request.Send(ctx, js.Conn(), events.SubjectPolicy, events.PolicyRequest{V: events.Version, Tenant: c.Tenant}, &left)
	if err != nil && !request.Refused(err, events.CodeNotFound) {
		return fmt.Errorf("all sessions are erased, and the policy is not: %w", err)
	}
	return f.show(c.JSON, sum)
}

// erasedTenant is the command's result for all sessions of a tenant.
type erasedTenant struct {
	V        int    `json:"v"`
	Tenant   string `json:"tenant"`
	Sessions int    `json:"sessions"`
	Events   int64  `json:"events"`
	Outcomes int64  `json:"outcomes"`
	Files    int64  `json:"files"`
}

// Write prints it for people.
func (e erasedTenant) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "tenant     %s, %s and its policy\nerased     %d events, %d outcomes and jobs, %d quarantined ledger files\n",
		e.Tenant, units.Count(e.Sessions, "session"), e.Events, e.Outcomes, e.Files)
	return err
}

// unknownError: nothing of the session was stored.
type unknownError struct{ at events.Address }

func (e *unknownError) Error() string {
	if e.at.Session == "" {
		return "nothing of " + e.at.Tenant + " was stored"
	}
	return "nothing of " + named.Show(e.at) + " was stored"
}

// Hint names the next step.
func (e *unknownError) Hint() string {
	return "Is the name right? " + cli.Program("publisher") + " sessions lists those of a tenant, and tenants the tenants."
}

// confirmed prints a question, and reads the word that confirms from the terminal. The end of the input, or of ctx, is
// a no.
func confirmed(ctx context.Context, in io.Reader, out io.Writer, question, word string) bool {
	fmt.Fprint(out, question)
	typed := make(chan string, 1)
	go func() { // ends with the program where nothing is typed
		line, _ := bufio.NewReader(in).ReadString('\n') // what was read before an error is no name
		typed <- line
	}()
	select {
	case line := <-typed:
		if !strings.HasSuffix(line, "\n") {
			fmt.Fprintln(out)
		}
		return strings.TrimSpace(line) == word
	case <-ctx.Done():
		fmt.Fprintln(out)
		return false
	}
}

// erased is the command's result.
type erased struct {
	events.Address `json:"-"`
	*events.Erased
}

// MarshalJSON writes it as the owner published it.
func (e erased) MarshalJSON() ([]byte, error) { return codec.Marshal(e.Erased) }

// Write prints it for people.
func (e erased) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "session    %s, everything before sequence %d\nerased     %d events, %d outcomes and jobs, %d quarantined ledger files\n",
		named.Show(e.Address), e.Seq, e.Events, e.Outcomes, e.Files)
	if err == nil && e.Resumed {
		_, err = fmt.Fprintln(w, "note       an earlier try was cut off: the figures are of the last one; see docs/operations.md#erasing-a-session")
	}
	return err
}
