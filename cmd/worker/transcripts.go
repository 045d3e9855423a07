package main

import (
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"compactd/examples/sessions"
	"compactd/internal/ops/transcript"
)

// recordings is where Claude Code keeps its sessions.
const recordings = "~/.claude/projects"

// choose fills in what is played where no log and no transcripts are named: the sessions
// of Claude Code on this machine, or the examples where there are none. undo deletes
// what it made.
func (c *replayCmd) choose(f *flags, k *kong.Context) (undo func(), err error) {
	home, _ := os.UserHomeDir() // without one there are no recordings
	own := filepath.Join(home, ".claude", "projects")
	switch {
	case len(c.Files) == 1 && c.Files[0] == own: // named, and maybe not there
	case len(c.Files) > 0 || c.ofLog(f, k):
		return func() {}, nil
	}
	if _, err := transcript.Open(transcript.Auto, own); err == nil {
		if len(c.Files) == 0 {
			c.note = "The sessions of Claude Code in " + recordings + ":"
		}
		c.Files, c.named = []string{own}, recordings
		return func() {}, nil
	}
	c.note = "There are no sessions in " + recordings + ", so these are the examples; for other transcripts: worker replay PATH"
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
	if f.NATS != "" || isNamed(k, "data") || os.Getenv("COMPACTD_DATA") != "" || c.partOfLog() {
		return true
	}
	_, err := os.Stat(filepath.Join(f.Data, "nats"))
	return err == nil
}
