package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is where the pages' paths begin.
const root = ".."

// page is a Markdown file of the repository.
type page struct {
	path   string // from the root, with slashes
	text   string
	blocks []block
}

// block is a piece of code between fences.
type block struct {
	line int    // of the opening fence, from 1
	lang string // sh, output, go, …; empty for figures and pictures
	note string // the comment right above it, without its marks
	text string
}

// pages reads all Markdown of the repository that people read.
func pages(t *testing.T) (out []page) {
	t.Helper()
	skipped := []string{".git", ".tools", "bin", "data", "internal", "node_modules"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(skipped, d.Name()) {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		out = append(out, page{filepath.ToSlash(rel), string(text), blocks(string(text))})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("found %d pages", len(out))
	}
	// The commands of the terminal script print the same in terminals of 80 and 120 columns, in the form of a page.
	const terminal = "docs/testdata/terminal.txt"
	text := read(t, terminal)
	return append(out, page{terminal, text, blocks(text)})
}

var (
	fence   = regexp.MustCompile("^```(\\w*)$")
	comment = regexp.MustCompile(`^<!-- (.*) -->$`)
)

func blocks(text string) (out []block) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		m := fence.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		b := block{line: i + 1, lang: m[1]}
		if i > 0 {
			if note := comment.FindStringSubmatch(lines[i-1]); note != nil {
				b.note = note[1]
			}
		}
		n := slices.Index(lines[i+1:], "```")
		if n < 0 {
			n = len(lines) - i - 1
		}
		b.text = strings.Join(lines[i+1:i+1+n], "\n") + "\n"
		out = append(out, b)
		i += n + 1
	}
	return out
}

// prose is the page without what stands between fences.
func (p page) prose() string {
	var out []string
	inside := false
	for line := range strings.SplitSeq(p.text, "\n") {
		if strings.HasPrefix(line, "```") {
			inside = !inside
		} else if !inside {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
