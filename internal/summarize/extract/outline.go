package extract

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"compactd/internal/events/codec"
	"compactd/internal/lazyregexp"
	"compactd/internal/summarize"
	"compactd/internal/summarize/sanitize"
	"compactd/internal/summarize/snippet"
)

// OutlinePrompt is the version of the outline of a file.
const OutlinePrompt = "outline-1"

// Bounds of an outline.
const (
	outlineUnits = 200 // of one line
	outlineLines = 100_000
	leastOutline = 40 // units; less is of no use
	checkedLines = 64 // between two checks of the context
)

// SummarizeFile returns an outline of a file: its first lines, headings, declarations and the first lines of
// paragraphs, each with its number, as many as fit.
func (Summarizer) SummarizeFile(ctx context.Context, f summarize.File) (*summarize.FileSummary, error) {
	f, err := summarize.SanitizeFile(ctx, f)
	if err != nil {
		return nil, err
	}
	return Outline(ctx, f)
}

// Outline is SummarizeFile for a sanitized file.
func Outline(ctx context.Context, f summarize.File) (*summarize.FileSummary, error) {
	lines := outlineOf(ctx, f.Text)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case len(lines) == 0:
		return nil, summarize.ErrNothing
	case f.MaxUnits < leastOutline:
		return nil, summarize.ErrNoRoom
	}
	room := int(f.MaxUnits)
	var picked []outlineLine
	for _, rank := range []int{rankHead, rankPlan, rankParagraph, rankOther} {
		of := slices.DeleteFunc(slices.Clone(lines), func(l outlineLine) bool { return l.rank != rank })
		fit, whole := spread(of, room)
		for _, l := range fit {
			room -= l.cost
		}
		if picked = append(picked, fit...); !whole {
			break
		}
	}
	if len(picked) == 0 {
		return nil, summarize.ErrNoRoom
	}
	slices.SortFunc(picked, func(a, b outlineLine) int { return a.at - b.at })
	var b strings.Builder
	for i, l := range picked {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.text)
	}
	return &summarize.FileSummary{Text: sanitize.Redact(b.String()), Model: Model, Prompt: OutlinePrompt}, nil
}

// outlineLine is a candidate line for an outline.
type outlineLine struct {
	text string
	at   int // its place in the file
	rank int
	cost int // units, its line break included
}

// Ranks of lines; the lowest comes first.
const (
	rankHead = iota
	rankPlan
	rankParagraph
	rankOther
)

// headLines is the number of first lines.
const headLines = 5

var (
	// planLine is a heading, a declaration, a section of a configuration or of a list of
	// data, in most languages.
	planLine = lazyregexp.New(`^(?:#{1,6} |\[[^\]]+\]$|={2,}$|@?(?:(?:pub(?:\([a-z]+\))?|public|private|protected|static|final|abstract|async|export|default|override|open|internal|extern|unsafe) )*` +
		`(?:func|fn|def|defp|defmodule|class|interface|struct|enum|trait|impl|type|module|namespace|object|record|service|message|package|function|fun|sub|procedure|create|alter|const|let|var|val|resource|provider|output|variable)\b)`)
	// member is a declaration within another one.
	member = lazyregexp.New(`^\s{1,8}(?:(?:pub|public|private|protected|static|final|async|override) )*(?:func|fn|def|defp|class|interface|function|fun|constructor|rpc|enum|message)\b`)
	// noted is a line that its author marked.
	noted = lazyregexp.New(`\b(?:TODO|FIXME|XXX|WARNING|IMPORTANT|DEPRECATED|BREAKING|ERROR|FATAL|PANIC)\b`)
)

// outlineOf ranks the lines of a file. A far too long line is split into sentences.
func outlineOf(ctx context.Context, text string) []outlineLine {
	var out []outlineLine
	number, blank := 0, true
	for raw := range strings.Lines(text) {
		if number++; number > outlineLines || number%checkedLines == 0 && ctx.Err() != nil {
			break
		}
		raw = strings.TrimRight(raw, "\r\n \t")
		if raw == "" {
			blank = true
			continue
		}
		for i, piece := range sentencesOf(raw) {
			rank := rankOther
			switch {
			case len(out) < headLines:
				rank = rankHead
			case planLine().MatchString(strings.ToLower(piece)) || member().MatchString(piece) || noted().MatchString(piece):
				rank = rankPlan
			case blank && i == 0:
				rank = rankParagraph
			}
			if l := newOutlineLine(piece, number, len(out), rank); l.text != "" {
				out = append(out, l)
			}
		}
		blank = false
	}
	return out
}

func newOutlineLine(piece string, number, at, rank int) outlineLine {
	text := snippet.ClipNeutral(piece, outlineUnits)
	if strings.Trim(text, "{}()[];,-=_*`~/ ") == "" {
		return outlineLine{}
	}
	text = strconv.Itoa(number) + ": " + text
	return outlineLine{text, at, rank, codec.Units(text) + 1}
}

// sentencesOf splits a line that an outline would cut.
func sentencesOf(line string) []string {
	if len(line) <= 2*outlineUnits {
		return []string{line}
	}
	return slices.DeleteFunc(strings.SplitAfter(line, ". "), func(s string) bool { return strings.TrimSpace(s) == "" })
}

// spread takes lines evenly over the file while they fit; whole reports whether all were taken.
func spread(lines []outlineLine, room int) (taken []outlineLine, whole bool) {
	total := 0
	for i := range lines {
		total += lines[i].cost
	}
	if total <= room {
		return lines, true
	}
	n := len(lines) * max(room, 0) / total
	for k := range n {
		if l := lines[k*len(lines)/n]; l.cost <= room {
			taken, room = append(taken, l), room-l.cost
		}
	}
	return taken, false
}
