package transcript

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"compactd/internal/events"
)

// From is the format of recordings.
type From string

// The formats. Auto looks at each file.
const (
	Auto       From = "auto"
	Compactd   From = "compactd"
	ClaudeCode From = "claude-code"
	OpenAI     From = "openai"
	SWEAgent   From = "swe-agent"
)

// endings are the names, without .gz, that a directory is searched for.
var endings = map[From][]string{
	Auto:       {".jsonl", ".json", ".traj"},
	Compactd:   {".jsonl"},
	ClaudeCode: {".jsonl"},
	OpenAI:     {".json", ".jsonl"},
	SWEAgent:   {".traj", ".traj.json"},
}

// parser of a file of this format.
func (f From) parser(path string) parser {
	switch f {
	case ClaudeCode:
		return parseClaudeCode
	case OpenAI:
		if strings.HasSuffix(strings.TrimSuffix(path, ".gz"), ".jsonl") {
			return parseOpenAILines
		}
		return parseOpenAI
	case SWEAgent:
		return parseSWEAgent
	case Auto, Compactd:
	}
	return parseCompactd
}

// Source is a number of files, whose sessions are read one file at a time.
type Source struct {
	files   []file
	Unknown int // files of the directories that are no transcripts
	// Format is the dialect that sessions are translated into; "" leaves each as it was
	// recorded. See [Session.As].
	Format events.Format

	Thinking bool // without a signature stays; see [ReadThinking]
}

type file struct {
	path string
	from From
}

// Open finds the files that paths stand for, directories with all below them. A file
// that is named must be of a known format, one that is found may not be.
func Open(from From, paths ...string) (*Source, error) {
	s := &Source{}
	for _, path := range paths {
		before := len(s.files)
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case info.IsDir():
			err = s.walk(from, path)
		default:
			err = s.add(from, path)
		}
		if err != nil {
			return nil, fmt.Errorf("read transcripts: %w", err)
		}
		if len(s.files) == before {
			return nil, fmt.Errorf("read transcripts: %s holds no *%s of %s that can be read", path, strings.Join(endings[from], ", *"), from)
		}
	}
	return s, nil
}

func (s *Source) walk(from From, root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(path, ".gz")
		if d.IsDir() || !slices.ContainsFunc(endings[from], func(end string) bool { return strings.HasSuffix(name, end) }) {
			return nil
		}
		err = s.add(from, path)
		if errors.Is(err, errUnknown) {
			s.Unknown++
			return nil
		}
		return err
	})
}

func (s *Source) add(from From, path string) error {
	if from == Auto {
		var err error
		if from, err = detect(path); err != nil {
			return err
		}
	}
	s.files = append(s.files, file{path, from})
	return nil
}

// Sessions reads the files, as often as it is called, always to the same sessions.
// What cannot be read is reported, with its file and line, and left out.
func (s *Source) Sessions(report func(error)) iter.Seq[Session] {
	return func(yield func(Session) bool) {
		names := map[string]int{}
		for _, f := range s.files {
			in := input{
				stem: stem(f.path), thinking: s.Thinking, named: func(name string) string { return unique(names, name) },
				bad: func(err error) { report(fmt.Errorf("%s: %w", f.path, err)) },
			}
			for _, session := range in.parse(f.path, f.from.parser(f.path)) {
				if s.Format != "" {
					var err error
					if session, err = session.As(s.Format); err != nil {
						in.bad(err)
						continue
					}
				}
				if !yield(session) {
					return
				}
			}
		}
	}
}

// unique makes a name that may stand in a subject, and that no other session has.
func unique(names map[string]int, name string) string {
	name = validName(name)
	for {
		names[name]++
		n := names[name]
		if n == 1 {
			return name
		}
		name = validName(fmt.Sprintf("%s-%d", name, n))
	}
}

// validName makes a session's name of any text: other characters become -, and a
// long one keeps its beginning and a hash.
func validName(s string) string {
	name := strings.Map(func(r rune) rune {
		if events.ValidID(string(r)) {
			return r
		}
		return '-'
	}, s)
	if len(name) > events.MaxTenantLen {
		name = fmt.Sprintf("%s-%08x", name[:events.MaxTenantLen-9], crc32.ChecksumIEEE([]byte(s)))
	}
	return cmp.Or(name, "session")
}
