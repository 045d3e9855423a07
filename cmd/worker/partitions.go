package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/coord"
	"compactd/internal/broker/jsapi"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/inspect"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

type partitionsCmd struct {
	List listCmd `cmd:"" default:"withargs" help:"Print the load of each partition, and which one it was split off from; changes nothing."`
	Grow growCmd `cmd:"" help:"Double the partitions of the log, while its workers run; it cannot be undone."`
}

type listCmd struct {
	JSON bool `env:"COMPACTD_JSON" help:"Print JSON."`
}

// Run prints who decides each partition, and how much that is.
func (c *listCmd) Run(ctx context.Context, f *flags) error {
	f.optional = `"` + events.SubjectFleet + `"`
	return f.withLog(ctx, func(js jetstream.JetStream) error {
		l, err := inspect.Measure(ctx, js, f.dataOf("ledgers"))
		if err != nil {
			return err
		}
		return f.show(c.JSON, l)
	})
}

type growCmd struct {
	Count   int           `arg:"" help:"New number of partitions: twice the present one. If a growth to this number is under way, the command follows it."`
	Yes     bool          `help:"Grow without confirmation; it cannot be undone."`
	Timeout time.Duration `default:"10m" placeholder:"TIME" help:"How long to wait until each partition is split (${default}). After it the workers go on."`
	JSON    bool          `env:"COMPACTD_JSON" help:"Print JSON."`
}

// Validate requires --yes where no terminal can confirm.
func (c *growCmd) Validate() error {
	if !c.Yes && !isatty.IsTerminal(os.Stdin.Fd()) {
		return errors.New("a growth cannot be undone: --yes confirms it")
	}
	return nil
}

// codeGrowing refuses a growth during another one.
const codeGrowing events.Code = "growing"

// growthError is why the log does not grow, or has not yet.
type growthError struct {
	code events.Code
	hint string
	err  error
}

func (e *growthError) Error() string { return e.err.Error() }

// Hint is the next step.
func (e *growthError) Hint() string { return e.hint }

// errNotGrown: the number was not typed.
var errNotGrown = errors.New("nothing was changed")

// Run requests the growth, unless it is under way, and waits until each partition is split.
func (c *growCmd) Run(ctx context.Context, f *flags) error {
	return f.withLog(ctx, func(js jetstream.JetStream) error {
		began := time.Now()
		t, err := c.begin(ctx, js)
		if err != nil {
			return err
		}
		from := t.Count()
		if len(t.Unsplit()) > 0 {
			from /= 2
		}
		if err := c.follow(ctx, js, t); err != nil {
			return err
		}
		return f.show(c.JSON, grown{events.Version, from, t.Count(), time.Since(began).Milliseconds()})
	})
}

// begin is the table of the growth, which it requests unless that was done before, or is done already.
func (c *growCmd) begin(ctx context.Context, js jetstream.JetStream) (partitions.Table, error) {
	streams, err := topology.Describe(ctx, js)
	if err != nil {
		return partitions.Table{}, err
	}
	t := streams.Partitions
	n := t.Count()
	if c.Count == n && len(t.Lineage(n-1)) > 0 {
		return t, nil
	}
	if len(t.Unsplit()) > 0 {
		return t, growing(n)
	}
	if c.Count != 2*n || c.Count > partitions.Most {
		hint := fmt.Sprintf("A growth makes two partitions of each: %s partitions grow %d.", cli.Program("worker"), 2*n)
		if 2*n > partitions.Most {
			hint = fmt.Sprintf("It has at most %d.", partitions.Most)
		}
		return t, &growthError{events.CodeOutOfRange, hint, fmt.Errorf("the log has %d partitions", n)}
	}
	all, err := coord.NewMembers(js, time.Second).All(ctx)
	if err != nil {
		return t, err
	}
	if len(all) == 0 {
		return t, &growthError{events.CodeUnavailable, "Start a worker: the owner of a partition splits it.", errors.New("no worker runs")}
	}
	question := fmt.Sprintf("The log gets %d partitions in place of %d, and earlier versions of worker refuse it from then on; this cannot be undone. Type the new number, %[1]d, to confirm: ", 2*n, n)
	if !c.Yes && !confirmed(ctx, os.Stdin, os.Stderr, question, fmt.Sprint(2*n)) {
		return t, errNotGrown
	}
	if t, err = topology.Grow(ctx, js); errors.Is(err, partitions.ErrGrowing) { // another command was faster
		return t, growing(t.Count())
	}
	return t, err
}

func growing(to int) error {
	return &growthError{codeGrowing, followHint(to), fmt.Errorf("%w, to %d partitions", partitions.ErrGrowing, to)}
}

func followHint(to int) string {
	return fmt.Sprintf("%s partitions grow %d --yes follows it, and %[1]s doctor has what keeps it.", cli.Program("worker"), to)
}

// growPause is the time between two looks at the growth.
const growPause = 100 * time.Millisecond

// follow waits until each partition is split, and SESSIONS has all that, which an update of another setting may undo.
func (c *growCmd) follow(ctx context.Context, js jetstream.JetStream, t partitions.Table) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	bar := term.NewBar(os.Stderr, "splitting", int64(t.Count()/2), true)
	defer bar.Done()
	done := 0
	err := retry.Every(growPause).Until(ctx, func() (bool, error) {
		before := t
		err := jsapi.AwaitServer(ctx, func(error) {}, func() (err error) {
			t, err = topology.Record(ctx, js, t)
			return err
		})
		if err != nil {
			return false, err
		}
		split := t.Count()/2 - len(t.Unsplit())
		bar.Add(int64(split - done))
		done = split
		return done == t.Count()/2 && t.Equal(before), nil
	})
	if err != nil && ctx.Err() != nil {
		return &growthError{events.CodeUnavailable, followHint(t.Count()), fmt.Errorf("%d of %s are split; the workers go on", done, units.Count(t.Count()/2, "partition"))}
	}
	return err
}

// grown is the command's result. From is To if nothing was left to split.
type grown struct {
	V    int   `json:"v"`
	From int   `json:"from"`
	To   int   `json:"to"`
	Took int64 `json:"took_ms"`
}

// Write prints it for people.
func (g grown) Write(w io.Writer) error {
	text := fmt.Sprintf("the log has %d partitions", g.To)
	if g.From < g.To {
		text += fmt.Sprintf(" in place of %d, after %s", g.From, units.Span(time.Duration(g.Took)*time.Millisecond))
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
