package main

import (
	"context"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"

	"compactd/internal/replay"
	"compactd/internal/transcript"
)

type replayCmd struct {
	Files    []string      `arg:"" name:"file" help:"Transcripts (.jsonl, .jsonl.gz), or folders of them."`
	Speed    float64       `help:"Times faster than recorded; 0 does not wait at all (${default})." default:"0"`
	Gap      time.Duration `help:"Pause between the turns of a session (${default})." default:"0s"`
	Parallel int           `help:"Sessions at once (${default})." default:"4"`
	Suffix   string        `help:"Add this to the name of each session, to replay it once more."`
}

// Run replays the files and prints the report.
func (c *replayCmd) Run(ctx context.Context, f *flags) error {
	var sessions []transcript.Session
	turns := 0
	for _, file := range c.Files {
		s, err := transcript.Read(file)
		if err != nil {
			return err
		}
		for i := range s {
			turns += len(s[i].Turns)
		}
		sessions = append(sessions, s...)
	}
	nc, _, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	report, err := replay.Run(ctx, replay.Config{
		Conn: nc, Tenant: f.Tenant, Suffix: c.Suffix, Speed: c.Speed, Gap: c.Gap, Parallel: c.Parallel, Progress: progress(turns),
	}, sessions)
	if err != nil {
		return err
	}
	summary := report.Summary()
	if f.JSON {
		err = printJSON(summary)
	} else {
		err = report.WriteTable(os.Stdout)
	}
	if err != nil {
		return err
	}
	return summary.Problem()
}

// progress shows a bar on a terminal.
func progress(turns int) func() {
	if !isatty.IsTerminal(os.Stderr.Fd()) {
		return nil
	}
	bar := progressbar.NewOptions(turns, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription("turns"),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionClearOnFinish())
	return func() { _ = bar.Add(1) } // a bar that cannot be drawn is no reason to stop
}
