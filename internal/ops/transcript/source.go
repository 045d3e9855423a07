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
	"compactd/internal/events/codec"
)

// From is the format of recordings.
type From string

// The formats. Auto looks at each file.
const (
	Auto         From = "auto"
	Compactd     From = "compactd"
	ClaudeCode   From = "claude-code"
	OpenAI       From = "openai"
	SWEAgent     From = "swe-agent"
	MiniSWEAgent From = "mini-swe-agent"
	Codex        From = "codex"
	Pi           From = "pi"
	Copilot      From = "copilot-cli"
	Gemini       From = "gemini-cli"
	Opencode     From = "opencode"
)

// format finds and reads the sessions of one program.
type format struct {
	from  From
	ends  []string // of names, without the end of a compression, that a directory is searched for
	parse parser
	is    func(codec.Raw) bool // recognises the format by the members of a file's first value
}

// formats in the order in which a file is tried: the first that fits counts.
var formats = []format{
	{Compactd, []string{".jsonl"}, parseCompactd, func(raw codec.Raw) bool { return has(raw, "session", "kind") }},
	{Codex, []string{".jsonl"}, parseCodex, func(raw codec.Raw) bool {
		return has(raw, "timestamp", "type", "payload") || has(raw, "id", "timestamp", "instructions")
	}},
	{Pi, []string{".jsonl"}, parsePi, func(raw codec.Raw) bool {
		return codec.String(codec.Get(raw, "type")) == "session" && has(raw, "id", "cwd")
	}},
	{Copilot, []string{".jsonl"}, parseCopilot, func(raw codec.Raw) bool {
		return has(raw, "type", "data", "parentId") && !has(raw, "customType")
	}},
	{Gemini, []string{".json", ".jsonl"}, parseGemini, func(raw codec.Raw) bool {
		_, checkpoint := geminiContents(raw)
		return has(raw, "sessionId", "projectHash") || checkpoint && !has(raw, "toolCall")
	}},
	{Opencode, []string{".json", ".db"}, parseOpencode, func(raw codec.Raw) bool {
		return has(raw, "id", "title", "time") && (has(raw, "projectID") || has(raw, "directory")) ||
			has(raw, "info", "messages") && has(first(codec.Get(raw, "messages")), "info", "parts")
	}},
	{MiniSWEAgent, []string{".json"}, parseMiniSWEAgent, func(raw codec.Raw) bool {
		return has(raw, "trajectory_format", "messages") || has(raw, "info", "messages")
	}},
	{SWEAgent, []string{".traj", ".traj.json"}, parseSWEAgent, func(raw codec.Raw) bool {
		return has(raw, "history") && !has(raw, "toolCall") || has(raw, "trajectory") // Gemini CLI's states for undoing a call have a history too
	}},
	{OpenAI, []string{".json", ".jsonl"}, parseOpenAI, func(raw codec.Raw) bool {
		return has(raw, "messages") || has(first(raw), "role")
	}},
	{ClaudeCode, []string{".jsonl"}, parseClaudeCode, func(raw codec.Raw) bool {
		return has(raw, "type", "sessionId") || has(raw, "type", "uuid") || has(raw, "type", "leafUuid") || has(raw, "type", "messageId")
	}},
}

// Formats are the names of those that can be read.
func Formats() (out []string) {
	for _, f := range formats {
		out = append(out, string(f.from))
	}
	slices.Sort(out)
	return out
}

// format is the one of a name.
func (f From) format() format {
	return formats[slices.IndexFunc(formats, func(x format) bool { return x.from == f })]
}

// ends are those that a directory is searched for.
func (f From) ends() (out []string) {
	if f != Auto {
		return f.format().ends
	}
	for _, x := range formats {
		out = append(out, x.ends...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (f From) described() string {
	if f == Auto {
		return "a known format"
	}
	return string(f)
}

// Source is a number of files, whose sessions are read one file at a time.
type Source struct {
	files   []found
	failed  []error // files and directories that cannot be read
	Unknown int     // files of the directories that are no transcripts
	// Format is the dialect that sessions are translated into; "" leaves each as it was
	// recorded. See [Session.As].
	Format events.Format

	Thinking bool // without a signature stays
	// Read is called after each file, with its size on disk; it may be nil.
	Read func(bytes int64)
}

// Len is the number of files.
func (s *Source) Len() int { return len(s.files) }

// Bytes is the size of the files on disk.
func (s *Source) Bytes() (sum int64) {
	for _, f := range s.files {
		sum += f.size
	}
	return sum
}

// found is a file of a known format.
type found struct {
	path string
	from From
	size int64
}

// Open finds the transcripts at paths, and below those that are directories. A file that is named
// must have a known format; other files in a directory are left out.
func Open(from From, paths ...string) (*Source, error) {
	s := &Source{}
	for _, path := range paths {
		before := len(s.files)
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case info.IsDir():
			s.walk(from, path)
		default:
			err = s.add(from, path)
		}
		if err != nil {
			return nil, fmt.Errorf("read transcripts: %w", err)
		}
		if len(s.files) == before {
			return nil, fmt.Errorf("read transcripts: %s holds no transcript: no *%s of %s", path, strings.Join(from.ends(), ", *"), from.described())
		}
	}
	return s, nil
}

// walk adds the files below a directory. One that cannot be read is kept to be reported.
func (s *Source) walk(from From, root string) {
	ends := from.ends()
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			s.failed = append(s.failed, err)
			return nil
		}
		name := plain(path)
		if d.IsDir() && besideSessions(path) {
			return fs.SkipDir
		}
		if beside, ok := strings.CutSuffix(path, ".zst"); ok {
			if _, err := os.Stat(beside); err == nil {
				return nil // Codex is about to delete one of the two
			}
		}
		if d.IsDir() || !slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) }) {
			return nil
		}
		switch err := s.add(from, path); {
		case errors.Is(err, ErrUnknown):
			s.Unknown++
		case err != nil:
			s.failed = append(s.failed, err)
		}
		return nil
	})
}

// besideSessions reports whether a directory has the messages or parts of opencode, which are
// read with the sessions beside them.
func besideSessions(path string) bool {
	if name := filepath.Base(path); name != "message" && name != "part" {
		return false
	}
	_, err := os.Stat(filepath.Join(filepath.Dir(path), "session"))
	return err == nil
}

func (s *Source) add(from From, path string) error {
	if from == Auto {
		var err error
		if from, err = detect(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	var size int64
	if info, err := os.Stat(path); err == nil {
		size = info.Size()
	}
	s.files = append(s.files, found{path, from, size})
	return nil
}

// Sessions reads the files, as often as it is called, always to the same sessions.
// Lines that cannot be read are left out, and reported once for a file: the first, with its
// place, and how many more there are.
func (s *Source) Sessions(report func(error)) iter.Seq[Session] {
	return func(yield func(Session) bool) {
		for _, err := range s.failed {
			report(err)
		}
		names := map[string]int{}
		for _, f := range s.files {
			if !s.read(f, names, report, yield) {
				return
			}
		}
	}
}

func (s *Source) read(f found, names map[string]int, report func(error), yield func(Session) bool) bool {
	var bad error // the first of some
	some := 0
	defer func() {
		if s.Read != nil {
			s.Read(f.size)
		}
		switch {
		case some == 1:
			report(fmt.Errorf("%s: %w", f.path, bad))
		case some > 1:
			report(fmt.Errorf("%s: %w (and %d more)", f.path, bad, some-1))
		}
	}()
	going := true
	in := input{
		path: f.path, stem: stem(f.path), thinking: s.Thinking, named: func(name string) string { return unique(names, name) },
		bad: func(err error) { bad, some = cmp.Or(bad, err), some+1 },
		wanted: func(id string) bool {
			names["/"+id]++ // no name of a session
			return going && names["/"+id] == 1
		},
	}
	in.take = func(session Session) {
		session, err := session.As(cmp.Or(s.Format, session.Format))
		if err != nil {
			in.bad(err)
			return
		}
		going = going && yield(session)
	}
	in.parse(f.from.format().parse)
	return going
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
