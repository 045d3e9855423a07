package main

import (
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"compactd/examples/sessions"
	"compactd/internal/ops/cli"
	"compactd/internal/ops/transcript"
)

// choose fills in what is played where no log and no transcripts are named: the sessions
// of agents on this machine, or the examples where there are none. undo deletes what it made.
func (c *replayCmd) choose(f *flags, k *kong.Context) (undo func(), err error) {
	if len(c.Files) > 0 || c.ofLog(f, k) {
		c.named = c.Files
		return func() {}, nil
	}
	source, places := transcript.Installed()
	if len(places) > 0 {
		c.source, c.note = source, "The sessions on this machine:\n"+transcript.Describe(places)
		return func() {}, nil
	}
	c.note = "There are no sessions of agents on this machine, so these are the examples; for other transcripts: " + cli.Program("worker") + " replay PATH"
	dir, err := os.MkdirTemp("", "compactd-examples-")
	if err != nil {
		return nil, err
	}
	c.Files = []string{dir}
	return func() { _ = os.RemoveAll(dir) }, os.CopyFS(dir, sessions.Files)
}

// ofLog reports whether a log is meant: one is named, or lies where a worker keeps its
// own.
func (c *replayCmd) ofLog(f *flags, k *kong.Context) bool {
	if f.NATS != "" || cli.Given(k, "data") || os.Getenv("COMPACTD_DATA") != "" || c.partOfLog() {
		return true
	}
	_, err := os.Stat(filepath.Join(f.Data, "nats"))
	return err == nil
}
