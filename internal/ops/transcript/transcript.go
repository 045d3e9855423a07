package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"compactd/internal/events"
)

// Session is one recorded conversation.
type Session struct {
	Name   string
	Format events.Format
	Turns  []Turn
}

// Turn is one session.turn.
type Turn struct {
	ID       string
	Number   int64
	At       time.Time // when its last message was recorded; zero if unknown
	Payload  []byte
	Messages []events.Raw // those in Payload

	// Input is what the provider counted for the prompt of the turn's answer, in
	// tokens; 0 when it is not known. It stands also where Payload leaves usage
	// out: from the turn with Restarted on, which the recorded agent's own
	// compaction came before, it counts another history.
	Input     int64
	Restarted bool
}

// Read reads one file in the format compactd. A directory stands for all its *.jsonl
// and *.jsonl.gz. Sessions come in the order of their first line.
func Read(path string) ([]Session, error) { return read(path, false) }

// ReadThinking reads as Read does, but keeps thinking whose signature was not
// recorded. It was part of the prompts, and counts; no provider takes it back.
func ReadThinking(path string) ([]Session, error) { return read(path, true) }

func read(path string, thinking bool) ([]Session, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	if !info.IsDir() {
		return readFile(path, thinking)
	}
	var out []Session
	for _, pattern := range []string{"*.jsonl", "*.jsonl.gz"} {
		files, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			return nil, fmt.Errorf("read transcript: %w", err)
		}
		for _, f := range files {
			s, err := readFile(f, thinking)
			if err != nil {
				return nil, err
			}
			out = append(out, s...)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read transcript: %s holds no *.jsonl or *.jsonl.gz", path)
	}
	return out, nil
}

// readFile ends at the first bad line.
func readFile(path string, thinking bool) ([]Session, error) {
	in := input{stem: stem(path), thinking: thinking, bad: func(err error) error { return err }}
	s, err := in.parse(path, parseCompactd)
	if err != nil {
		return nil, fmt.Errorf("read transcript %s: %w", filepath.Base(path), err)
	}
	return s, nil
}
