package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// Limits of a page: words in a sentence, and columns in a line.
const (
	maxWords   = 40
	maxColumns = 120
)

// Sentences have at most maxWords words, lines at most maxColumns columns.
//
// A sentence is text outside of code, tables, headings and comments. It ends with its
// paragraph or list item, and behind . ! ? or : before white space. A code span is one
// word, and the target of a link is none. A line of a table counts as a line. Code does
// not: what programs print stays as they print it.
func TestProse(t *testing.T) {
	for _, p := range pages(t) {
		if p.path == "THIRD_PARTY_NOTICES.md" { // texts of others
			continue
		}
		for _, problem := range p.tooLong() {
			t.Error(problem)
		}
	}
}

// A page with one of each is found out.
func TestProseFindsWhatIsTooLong(t *testing.T) {
	words := func(n int) string { return strings.TrimSuffix(strings.Repeat("word ", n), " ") }
	text := strings.Join([]string{
		"# " + words(41), // 1: a heading is no sentence, but a line
		"",
		words(20), // 3: one sentence over two lines
		words(21) + ".",
		"",
		words(19) + ": " + words(3) + " `a b c`\n[a](to/a/page.md) end.", // 6: 19 and 6
		"- " + words(20) + ";", // 8: an item with its indented line
		"  " + words(21),
		"- " + words(20), // 10: the next item
		"```sh",
		words(50),
		"```",
		"    " + words(50),
		"",
		"| " + words(24) + " |", // 16: 123 columns
	}, "\n")
	p := page{path: "p.md", text: text}
	want := []string{
		"p.md:1: 206 columns",
		"p.md:16: 123 columns",
		"p.md:3: 41 words: word word word word word word …",
		"p.md:8: 41 words: word word word word word word …",
	}
	if diff := cmp.Diff(want, p.tooLong()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

var (
	listItem = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	target   = regexp.MustCompile(`\]\([^)]*\)`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	stop     = regexp.MustCompile(`[.!?:][)*"_]*\s+`)
)

// tooLong names the lines and sentences that are too long, lines first.
func (p page) tooLong() (out []string) {
	var sentences []string
	var paragraph []string
	begin := 0
	end := func() {
		for _, s := range split(strings.Join(paragraph, " ")) {
			if words := strings.Fields(s); len(words) > maxWords {
				sentences = append(sentences, fmt.Sprintf("%s:%d: %d words: %s …", p.path, begin, len(words), strings.Join(words[:6], " ")))
			}
		}
		paragraph = nil
	}
	fenced := false
	for i, line := range strings.Split(p.text, "\n") {
		text := strings.TrimSpace(line)
		code := strings.HasPrefix(line, "    ") && len(paragraph) == 0 && !listItem.MatchString(line)
		switch {
		case strings.HasPrefix(text, "```"):
			fenced = !fenced
			end()
			continue
		case fenced || code:
			continue
		}
		if n := utf8.RuneCountInString(line); n > maxColumns {
			out = append(out, fmt.Sprintf("%s:%d: %d columns", p.path, i+1, n))
		}
		if text == "" || strings.HasPrefix(text, "|") || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "<!--") {
			end()
			continue
		}
		if item := listItem.FindString(line); item != "" {
			end()
			text = strings.TrimPrefix(line, item)
		}
		if len(paragraph) == 0 {
			begin = i + 1
		}
		paragraph = append(paragraph, text)
	}
	end()
	return append(out, sentences...)
}

// split returns the sentences of a paragraph.
func split(paragraph string) []string {
	plain := codeSpan.ReplaceAllString(target.ReplaceAllString(paragraph, "]"), "code")
	return stop.Split(plain, -1)
}
