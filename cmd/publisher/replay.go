package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/request"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/ops/diff"
	"compactd/internal/ops/named"
	"compactd/internal/ops/replay"
	"compactd/internal/ops/term"
	"compactd/internal/ops/transcript"
)

type replayCmd struct {
	Files    []string      `arg:"" name:"path" help:"Transcripts, plain or .gz, or directories of them."`
	From     string        `default:"auto" enum:"auto,${formats}" placeholder:"FORMAT" help:"Format of the transcripts (auto|${formatsBar}, default ${default}: by their first lines)."`
	Format   string        `enum:",openai,anthropic,neurolink,openai-responses,gemini,bedrock,ai-sdk" default:"" placeholder:"DIALECT" help:"Publish the sessions in this dialect (openai|anthropic|neurolink|openai-responses|gemini|bedrock|ai-sdk), whatever they were recorded in."`
	Speed    float64       `help:"Times faster than recorded; 0 does not wait at all (${default})." default:"0"`
	Gap      time.Duration `help:"Pause between the turns of a session (${default})." default:"0s"`
	Parallel int           `help:"Sessions at once (${default})." default:"4"`
	Suffix   string        `help:"Add this to the name of each session, to replay it once more."`
	Each     bool          `help:"A row for each compaction instead of each session."`
}

// Validate finds wrong usage that kong cannot find.
func (c *replayCmd) Validate() error {
	if c.Speed < 0 || c.Gap < 0 || c.Parallel < 1 {
		return errors.New("--speed and --gap must be 0 or more, --parallel 1 or more")
	}
	return nil
}

// Run replays the files and prints the report.
func (c *replayCmd) Run(ctx context.Context, f *flags) error {
	source, err := transcript.Open(transcript.From(c.From), c.Files...)
	if errors.Is(err, transcript.ErrUnknown) {
		return fmt.Errorf("%w; --from names it: %s", err, strings.Join(transcript.Formats(), ", "))
	}
	if err != nil {
		return err
	}
	source.Format = events.Format(c.Format)
	f.optional = []string{readStreams}
	nc, err := f.connect(ctx)
	if err != nil {
		return err
	}
	denied, err := request.Denied(nc, readStreams)
	if err != nil {
		return err
	}
	turns, err := c.count(ctx, source)
	if err != nil {
		return err
	}
	bar := term.NewBar(os.Stderr, "turns", int64(turns), true)
	defer bar.Done()
	report, err := replay.Run(ctx, replay.Config{
		Conn: nc, Tenant: f.Tenant, Suffix: c.Suffix, Speed: c.Speed, Gap: c.Gap, Parallel: c.Parallel, Received: denied,
		Progress: func() { bar.Add(1) }, Waiting: f.waiting(bar, toStore), Undecided: f.waiting(bar, "workers to decide the turns"),
	}, source.Sessions(func(error) {})) // they were reported when they were counted
	bar.Done()
	if err != nil {
		return err
	}
	summary := report.Summary()
	err = f.show(summary, func(w io.Writer) error {
		if err := report.WriteTable(w, c.Each); err != nil {
			return err
		}
		return c.writeLargest(ctx, w, nc, report)
	})
	if err != nil {
		return err
	}
	return summary.Problem()
}

// writeLargest shows the compaction that took most off, message by message.
func (*replayCmd) writeLargest(ctx context.Context, w io.Writer, nc *nats.Conn, r *replay.Report) error {
	a, g := r.Largest()
	if g == nil {
		return nil
	}
	shown, err := change(ctx, nc, a, g.Number, g.Messages)
	if err != nil || shown == nil {
		return err
	}
	shown.TokensBefore, shown.TokensAfter = g.Before, g.After
	shown.Title = fmt.Sprintf("One of them: %s, generation %d at turn %d, %s", named.Name(a.Session), g.Number, g.Turn, diff.Because(g.Reason, g.Stages))
	fmt.Fprintln(w)
	return shown.Write(w)
}

// count reads all once, without keeping it, and reports what cannot be read.
func (c *replayCmd) count(ctx context.Context, source *transcript.Source) (turns int, err error) {
	bar := term.NewBar(os.Stderr, "reading", source.Bytes(), false)
	defer bar.Done()
	source.Read = bar.Add
	defer func() { source.Read = nil }()
	report := func(err error) {
		bar.Clear()
		fmt.Fprintf(os.Stderr, "publisher: left out: %v\n", err)
	}
	for s := range source.Sessions(report) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		turns += len(s.Turns)
	}
	bar.Done()
	if source.Unknown > 0 {
		fmt.Fprintf(os.Stderr, "publisher: skipped %d files that are not transcripts\n", source.Unknown)
	}
	if turns == 0 {
		return 0, fmt.Errorf("read transcripts: no turn of format %s found; --from FORMAT names the format; auto detects it by the first line", c.From)
	}
	return turns, nil
}

// readStreams are the permissions to read the streams, which no tenant of deploy/cluster has.
const readStreams = "$JS.API.STREAM.INFO." + topology.LogStream
