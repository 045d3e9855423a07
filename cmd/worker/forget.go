package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/mattn/go-isatty"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/erase"
	"compactd/internal/events"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/named"
)

type forgetCmd struct {
	Tenant  string        `arg:"" help:"Tenant of the session."`
	Session named.Session `arg:"" help:"Session to erase."`
	Yes     bool          `help:"Erase without confirmation; it cannot be undone."`
	Timeout time.Duration `default:"1m" placeholder:"TIME" help:"How long to wait until the erasure is confirmed (${default})."`
	JSON    bool          `env:"COMPACTD_JSON" help:"Print JSON."`
}

// Validate requires --yes where no terminal can confirm.
func (c *forgetCmd) Validate() error {
	if c.Tenant == "" || c.Session == "" {
		return nil // kong names what is missing
	}
	if !events.ValidID(c.Tenant) {
		return fmt.Errorf("the tenant %s is not 1 to %d of A-Z a-z 0-9 _ -", c.Tenant, events.MaxTenantLen)
	}
	if !c.Yes && !isatty.IsTerminal(os.Stdin.Fd()) {
		return errors.New("erasing a session cannot be undone: --yes confirms it")
	}
	return nil
}

// errNotConfirmed: the name of the session was not typed.
var errNotConfirmed = errors.New("nothing was erased")

// Run erases a session and prints what was erased, once that is confirmed.
func (c *forgetCmd) Run(ctx context.Context, f *flags) error {
	a := events.Address{Tenant: c.Tenant, Session: string(c.Session)}
	if !c.Yes && !confirmed(ctx, os.Stdin, os.Stderr, a) {
		return errNotConfirmed
	}
	nc, err := f.visit(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	done, err := erase.Request(ctx, js, a, "forget-"+uuid.NewString())
	if err != nil {
		return err
	}
	if err := f.show(c.JSON, erased{a, done}); err != nil {
		return err
	}
	if done.Events == 0 && done.Outcomes == 0 {
		return &unknownError{a}
	}
	return nil
}

// unknownError: nothing of the session was stored.
type unknownError struct{ at events.Address }

func (e *unknownError) Error() string { return "nothing of " + named.Show(e.at) + " was stored" }

// Hint names the next step.
func (e *unknownError) Hint() string {
	return "Is the name right? " + cli.Program("publisher") + " sessions lists those of a tenant."
}

// confirmed reads the name of the session from the terminal. The end of the input, or of
// ctx, is a no.
func confirmed(ctx context.Context, in io.Reader, out io.Writer, a events.Address) bool {
	fmt.Fprintf(out, "Everything of %s is erased; this cannot be undone. Type its name, %s, to confirm: ", named.Show(a), named.Name(a.Session))
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
		return strings.TrimSpace(line) == named.Name(a.Session)
	case <-ctx.Done():
		fmt.Fprintln(out)
		return false
	}
}

// erased is what the command prints.
type erased struct {
	events.Address `json:"-"`
	*events.Erased
}

// MarshalJSON writes it as the owner published it.
func (e erased) MarshalJSON() ([]byte, error) { return events.Marshal(e.Erased) }

// Write prints it for people.
func (e erased) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "session    %s, everything before sequence %d\nerased     %d events, %d outcomes and jobs, %d quarantined ledger files\n",
		named.Show(e.Address), e.Seq, e.Events, e.Outcomes, e.Files)
	if err == nil && e.Resumed {
		_, err = fmt.Fprintln(w, "note       an earlier try was cut off: the figures are of the last one; see docs/operations.md#erasing-a-session")
	}
	return err
}
