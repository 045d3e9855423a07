package transcripttest

import (
	"cmp"

	"compactd/internal/ops/transcript"
)

// Read reads a file in the format compactd, or all of a directory. An unreadable line is
// an error.
func Read(path string) ([]transcript.Session, error) { return read(path, false) }

// ReadThinking reads as Read does, but keeps thinking whose signature was not
// recorded. It was part of the prompts, and counts; no provider takes it back.
func ReadThinking(path string) ([]transcript.Session, error) { return read(path, true) }

func read(path string, thinking bool) (out []transcript.Session, failed error) {
	source, err := transcript.Open(transcript.Compactd, path)
	if err != nil {
		return nil, err
	}
	source.Thinking = thinking
	for s := range source.Sessions(func(err error) { failed = cmp.Or(failed, err) }) {
		out = append(out, s)
	}
	return out, failed
}
