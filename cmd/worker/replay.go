package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/weigh"
	"compactd/internal/exact"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
	"compactd/internal/ops/transcript"
	"compactd/internal/ops/units"
	"compactd/internal/worker/redecide"
)

type replayCmd struct {
	Files []string `arg:"" optional:"" type:"path" help:"Transcripts, or directories of them; they need no server. Absent: the log of --nats or --data; without a log, the sessions of agents on this machine, or the built-in examples."`

	Tenant  string        `placeholder:"NAME" help:"Only sessions of this tenant."`
	Session named.Session `placeholder:"NAME" help:"Only this session, of --tenant or the tenant default."`
	From    string        `placeholder:"TIME|SEQ" help:"Compare from this event on: a sequence of the log, or a time such as 2026-01-31T15:04:05Z."`
	To      string        `placeholder:"TIME|SEQ" help:"Compare up to and including this event."`

	SummaryDelay time.Duration `env:"COMPACTD_SUMMARY_DELAY" default:"60s" placeholder:"TIME" help:"With transcripts or --policy: time that a summary takes in the log (${default})."`

	JSON bool `env:"COMPACTD_JSON" help:"Print JSON."`

	span    redecide.Span
	compare bool               // policies are named
	note    string             // where the transcripts come from, when no path was given
	named   []string           // of the command line
	source  *transcript.Source // of this machine, without a path
}

// Validate finds wrong usage that kong cannot find.
func (c *replayCmd) Validate() error {
	c.span = redecide.Span{Tenant: c.Tenant, Session: string(c.Session)}
	if c.Session != "" {
		c.span.Tenant = cmp.Or(c.Tenant, events.DefaultTenant)
	}
	if c.Tenant != "" && !events.ValidID(c.Tenant) {
		return fmt.Errorf("--tenant is not 1 to %d of A-Z a-z 0-9 _ -", events.MaxTenantLen)
	}
	if c.SummaryDelay < 0 {
		return errors.New("--summary-delay must be 0 or more")
	}
	if len(c.Files) > 0 && c.partOfLog() {
		return errors.New("--tenant, --session, --from and --to are for a log, not for transcripts")
	}
	var errs [2]error
	c.span.From, errs[0] = place("--from", c.From)
	c.span.To, errs[1] = place("--to", c.To)
	return cmp.Or(errs[0], errs[1])
}

// partOfLog reports whether a part of a log is named.
func (c *replayCmd) partOfLog() bool { return cmp.Or(c.Tenant, string(c.Session), c.From, c.To) != "" }

// place reads a sequence or a time.
func place(flag, s string) (redecide.Place, error) {
	if s == "" {
		return redecide.Place{}, nil
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil && n > 0 {
		return redecide.Place{Seq: measure.Seq(n)}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return redecide.Place{}, fmt.Errorf("%s %s is neither a sequence of the log nor a time such as 2026-01-31T15:04:05Z", flag, s)
	}
	return redecide.Place{Time: t.UnixMilli()}, nil
}

// Run compares the log with its outcomes, or policies with each other.
func (c *replayCmd) Run(ctx context.Context, f *flags, k *kong.Context, log zerolog.Logger) error {
	undo, err := c.choose(f, k)
	if err != nil {
		return err
	}
	defer undo()
	c.compare = cli.Given(k, "policy") // a variable, which is meant for the worker, compares none
	if len(c.Files) > 0 || c.source != nil {
		return c.playFiles(ctx, f, log)
	}
	nc, done, err := f.reader(ctx)
	if err != nil {
		return err
	}
	defer done()
	if c.compare {
		return c.playLog(ctx, f, nc)
	}
	counters, err := counters()
	if err != nil {
		return err
	}
	r, err := redecide.Replay(ctx, nc, c.span, counters...)
	if err != nil {
		return err
	}
	return cmp.Or(f.show(c.JSON, replayed{r.Equal(), r}), unless(r.Equal(), errDiffers))
}

// errDiffers: the report lists the places.
var errDiffers = errors.New("some outcomes do not follow from the log; the report lists them. Outcomes that differ were written by another build with the same rules version, or changed since")

// reader connects to --nats, or opens the log in --data without a worker.
func (f *flags) reader(ctx context.Context) (nc *nats.Conn, done func(), err error) {
	if f.NATS != "" {
		nc, err = f.visit(ctx, f.stopIfDenied)
		return nc, func() { nc.Close() }, err
	}
	dir := filepath.Join(f.Data, "nats")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s holds no log; name the directory of a worker with --data, or its server with --nats", f.Data)
	}
	s, err := embedded.Start(embedded.Config{Dir: dir})
	if used, ok := errors.AsType[*embedded.DirInUseError](err); ok {
		return nil, nil, fmt.Errorf("%s is in use by %s; to read beside that worker use --nats with its address, by default nats://%s", f.Data, used.Holder, f.Listen)
	}
	if err != nil {
		return nil, nil, err
	}
	if nc, err = connect.Open(ctx, connect.Options{InProcess: s, Name: "compactd worker, replaying"}); err != nil {
		s.Stop()
		return nil, nil, err
	}
	return nc, func() { nc.Close(); s.Stop() }, nil
}

// counters are those that a config may name.
func counters() (out []weigh.Counter, err error) {
	for _, name := range []string{"o200k", "cl100k"} {
		by, err := exact.New(name)
		if err != nil {
			return nil, err
		}
		out = append(out, by)
	}
	return out, nil
}

// replayed is the command's result of a comparison.
type replayed struct {
	Equal bool `json:"equal"`
	*redecide.Replayed
}

// Write prints it for people.
func (r replayed) Write(w io.Writer) error {
	verdict := "equal"
	if !r.Equal {
		verdict = "NOT EQUAL"
	}
	fmt.Fprintf(w, "%s: %s, %s, %s, %s\n", verdict, units.Count(r.Events, "event"), units.Count(r.Sessions, "session"),
		units.Count(r.Outcomes, "outcome"), units.Count(r.Configs, "config"))
	if r.Older > 0 {
		fmt.Fprintf(w, "%d sessions began before the log does and were left out\n", r.Older)
	}
	for _, why := range slices.Sorted(maps.Keys(r.Undecidable)) {
		fmt.Fprintf(w, "%d sessions cannot be decided again: %s\n", r.Undecidable[why], why)
	}
	if r.Textless > 0 {
		fmt.Fprintf(w, "%d compactions were compared without their messages: their text has left the log\n", r.Textless)
	}
	if r.Differing == 0 {
		return nil
	}
	fmt.Fprintf(w, "%d sessions differ; the first difference of each:\n\n", r.Differing)
	t := term.NewTable(w, term.Column{Name: "SESSION", Min: 16}, term.Column{Name: "SEQ", Right: true}, term.Column{Name: "KIND"},
		term.Column{Name: "FIELD", Min: 8}, term.Column{Name: "RECORDED", Min: 12}, term.Column{Name: "DECIDED", Min: 12})
	for _, d := range r.Differences {
		t.Row(d.Tenant+"."+named.Name(d.Session), d.Seq, d.Kind, cmp.Or(d.Path, "-"), d.Recorded, d.Decided)
	}
	more := r.Differing - len(r.Differences)
	if err := t.Flush(); err != nil || more == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "(and %d more)\n", more)
	return err
}
