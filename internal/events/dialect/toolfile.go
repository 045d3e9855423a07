package dialect

import (
	"regexp"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/events/toolcall"
)

// File returns the path of the file of a call or a result, "" for none; of several files the first
// counts. changes means that the call writes the file. variant is the key of a read's other arguments:
// a read of some lines is covered by a read of the same lines or of the whole file, never by one of
// other lines.
func (p *Part) File() (path string, variant Key, changes bool) {
	if p.Kind == PartResult {
		return PathInText(p.Content()), 0, false
	}
	path, rest, changes := toolcall.File(p.Tool, p.Args)
	return path, KeyOf(strings.Join(rest, "\x00")), changes
}

// PathRead returns the file that a call reads, "" for none.
func PathRead(tool string, args codec.Raw) string {
	if path, _, changes := toolcall.File(tool, args); !changes {
		return path
	}
	return ""
}

// readText finds a file read in the text of a result, where there are no arguments.
// The pattern is the reference system's, held to the words of a read.
var readText = regexp.MustCompile("(?i)\\b(?:read_file|readFile|Read file|reading|read|cat)\\s+['\"`]?([^\\s'\"`]+)")

// maxReadText bounds how much of a result is searched, in bytes: a tool that
// names what it reads does so first.
const maxReadText = 512

// PathInText returns the path of the file that the text of a result begins with reading,
// "" for none.
func PathInText(s string) string {
	m := readText.FindStringSubmatchIndex(s[:min(len(s), maxReadText)])
	if m == nil || m[3] == maxReadText {
		return "" // or the path may go on
	}
	if path := s[m[2]:m[3]]; strings.ContainsAny(path, "./\\") {
		return path
	}
	return "" // "thread pool", "read the": a word
}
