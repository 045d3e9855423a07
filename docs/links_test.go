package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	span    = regexp.MustCompile("`([^`\n]+)`")
)

// Every link within the repository leads to a file, and every anchor to a heading.
// The map of the documentation names every page.
func TestLinks(t *testing.T) {
	all := pages(t)
	anchors := map[string]map[string]bool{}
	for _, p := range all {
		anchors[p.path] = p.anchors()
	}
	mapped := map[string]bool{}
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(p.prose(), "x"), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := p.path
			if file != "" {
				target = path.Join(path.Dir(p.path), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %s leads nowhere", p.path, m[1])
			} else if anchor != "" && !anchors[target][anchor] {
				t.Errorf("%s: %s has no such heading", p.path, m[1])
			}
			if p.path == "docs/README.md" {
				mapped[target] = true
			}
		}
	}
	for _, p := range all {
		dir := path.Dir(p.path)
		if (dir == "docs" || dir == "docs/format") && p.path != "docs/README.md" && !mapped[p.path] {
			t.Errorf("docs/README.md does not name %s", p.path)
		}
	}
}

// anchors are the names that GitHub gives to headings.
func (p page) anchors() map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(p.prose(), -1) {
		out[slug(m[1])] = true
	}
	return out
}

func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, link.ReplaceAllString(title, ""))
}
