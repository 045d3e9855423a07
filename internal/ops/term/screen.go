package term

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"compactd/internal/events/codec"
)

// When states whether to colour.
type When string

// Auto colours on a terminal, unless NO_COLOR is set or TERM is dumb.
const (
	Auto   When = "auto"
	Always When = "always"
	Never  When = "never"
)

// Screen is the output of a command.
type Screen struct {
	io.Writer
	// Width is the number of characters in a line; 0 is unbounded.
	Width int
	// Height is the number of visible lines; 0 if it is not a terminal.
	Height int

	color bool
}

// Open returns the screen that f is. COLUMNS, and LINES on a terminal, go before the
// terminal's own size.
func Open(f *os.File, color When) *Screen {
	s := &Screen{Writer: f}
	fd := int(f.Fd())
	terminal := term.IsTerminal(fd)
	if terminal {
		if width, height, err := term.GetSize(fd); err == nil {
			s.Width, s.Height = width, height
		}
		s.Height = cmp.Or(number("LINES"), s.Height)
	}
	s.Width = cmp.Or(number("COLUMNS"), s.Width)
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	s.color = color == Always || color != Never && terminal && !plain
	if s.color {
		text.EnableColors()
	}
	return s
}

// Terminal reports whether a person may read it while it is written.
func (s *Screen) Terminal() bool { return s.Height > 0 }

// Colors reports whether what is written may have colours.
func (s *Screen) Colors() bool { return s.color }

// number is a variable of the environment; 0 if it is not a number.
func number(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// screen returns the one that w is; any other writer has no width and no colour.
func screen(w io.Writer) *Screen {
	if s, ok := w.(*Screen); ok {
		return s
	}
	return &Screen{Writer: w}
}

// Style is the emphasis of a text.
type Style int

// The styles.
const (
	Plain Style = iota
	Faint
	Strong
	Good
	Notice
	Bad
)

var colors = map[Style]text.Colors{
	Faint: {text.Faint}, Strong: {text.Bold}, Good: {text.FgGreen}, Notice: {text.FgYellow}, Bad: {text.FgRed, text.Bold},
}

// Paint returns s in a style where w has colour, and s elsewhere.
func Paint(w io.Writer, style Style, s string) string {
	if !screen(w).color || style == Plain || s == "" {
		return s
	}
	return colors[style].Sprint(s)
}

// Fit shortens a line to what is left of the width of w when used characters are taken.
func Fit(w io.Writer, used int, s string) string {
	width := screen(w).Width
	if width == 0 {
		return s
	}
	return text.Snip(s, max(width-used, 1), "…")
}

// Line is a text on one line, without what a terminal might obey.
func Line(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}

// Wrapped writes a text in lines that fit w.
func Wrapped(w io.Writer, s string) error {
	if width := screen(w).Width; width > 0 {
		lines := strings.Split(s, "\n")
		for i, line := range lines {
			lines[i] = text.WrapSoft(line, width)
		}
		lines = strings.Split(strings.Join(lines, "\n"), "\n")
		for i, line := range lines {
			lines[i] = strings.TrimRight(line, " ")
		}
		s = strings.Join(lines, "\n")
	}
	_, err := io.WriteString(w, s+"\n")
	return err
}

// JSON prints a value for programs, on a line of its own.
func JSON(v any) error {
	data, err := codec.Marshal(v)
	if err == nil {
		_, err = fmt.Println(string(data))
	}
	return err
}

// Redraw writes lines over those that a terminal shows.
func (s *Screen) Redraw(lines string) error {
	erase := text.EraseLine.Sprint() // rest of a longer line before
	lines = strings.ReplaceAll(lines, "\n", erase+"\n")
	_, err := io.WriteString(s.Writer, "\x1b[H"+lines+"\x1b[J")
	return err
}
