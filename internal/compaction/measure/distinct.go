package measure

import (
	"slices"
	"strings"
)

// An output kept by lines has an endPart of the room for its head, and another for its tail. The rest is for
// lines in between: first those that name a word of the call, then the first line of each shape. Lines that
// differ only in numbers have one shape, so a long list, log or diff keeps one line of each sort.
const endPart = 4

// omitted marks omitted lines.
const omitted = "…\n"

// distinct returns the kept lines of a text in order, and their bytes. Lines with a word of named go first.
func distinct(text string, lines, bytes int64, named []string) (out string, kept int) {
	all := strings.SplitAfter(text, separator(text))
	f := &lineFold{lines: all, keep: make([]bool, len(all)), seen: map[string]bool{}, left: lines, room: bytes - int64(len(omitted))}
	f.end(slices.All(all), lines/endPart, bytes/endPart)
	f.end(slices.Backward(all), lines/endPart, bytes/endPart)
	f.between(func(l string) bool {
		return slices.ContainsFunc(named, func(w string) bool { return strings.Contains(l, w) })
	})
	f.between(func(string) bool { return true })
	return f.text()
}

// longLine is the mean length above which lines are records of a list, which commas separate.
const longLine = 1_000

// separator ends a line of a text, or a record of a list without line breaks.
func separator(text string) string {
	if len(text) > longLine*(strings.Count(text, "\n")+1) {
		return "},"
	}
	return "\n"
}

// lineFold chooses lines of a text.
type lineFold struct {
	lines []string
	keep  []bool
	seen  map[string]bool // shapes that are kept
	left  int64           // lines that may still be kept
	room  int64           // bytes, including the marks between lines
}

// end keeps lines from one end.
func (f *lineFold) end(all func(func(int, string) bool), lines, bytes int64) {
	for i, l := range all {
		if lines--; lines < 0 || f.keep[i] {
			return
		}
		if bytes -= int64(len(l)); bytes < 0 || !f.take(i) {
			return
		}
	}
}

// between keeps the first wanted line of each shape.
func (f *lineFold) between(wanted func(string) bool) {
	for i, l := range f.lines {
		if f.left <= 0 || f.room <= int64(len(omitted)) {
			return
		}
		if !f.keep[i] && !f.seen[shapeOf(l)] && wanted(l) {
			f.take(i)
		}
	}
}

// take keeps a line if there is room for it and a mark.
func (f *lineFold) take(i int) bool {
	cost := int64(len(f.lines[i]) + len(omitted))
	if cost > f.room || f.left <= 0 {
		return false
	}
	f.room, f.left = f.room-cost, f.left-1
	f.keep[i], f.seen[shapeOf(f.lines[i])] = true, true
	return true
}

// text returns the kept lines, with a mark for each gap.
func (f *lineFold) text() (out string, kept int) {
	var b strings.Builder
	gap := false
	for i, l := range f.lines {
		switch {
		case f.keep[i]:
			b.WriteString(l)
			kept += len(l)
		case !gap:
			b.WriteString(omitted)
		}
		gap = !f.keep[i]
	}
	return b.String(), kept
}

// shapeOf is a line without white space around it, and with one digit in place of each number.
func shapeOf(line string) string {
	line = strings.TrimSpace(line)
	if !strings.ContainsAny(line, "0123456789") {
		return line
	}
	out := make([]byte, 0, len(line))
	for i := range len(line) {
		c := line[i]
		if c < '0' || c > '9' {
			out = append(out, c)
		} else if i == 0 || line[i-1] < '0' || line[i-1] > '9' {
			out = append(out, '0')
		}
	}
	return string(out)
}
