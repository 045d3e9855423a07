package term

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Progress is a line that states what a long command does now, on a terminal.
type Progress struct {
	out   io.Writer // nil where it is not shown
	width int
	last  time.Time
}

// redraw is how often the line changes at most.
const redraw = 100 * time.Millisecond

// NewProgress is a line on f, which is no terminal as a rule when a program is the reader.
func NewProgress(f *os.File) *Progress {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return &Progress{}
	}
	return &Progress{out: f, width: width}
}

// Print replaces the line.
func (p *Progress) Print(format string, v ...any) {
	if p.out == nil || time.Since(p.last) < redraw {
		return
	}
	p.last = time.Now()
	fmt.Fprint(p.out, "\r", text.Snip(Line(fmt.Sprintf(format, v...)), p.width-1, "…"), text.EraseLine.Sprint())
}

// Done removes it.
func (p *Progress) Done() {
	if p.out != nil {
		fmt.Fprint(p.out, "\r", text.EraseLine.Sprint())
	}
	p.out = nil
}
