package term

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Column is one of a table.
type Column struct {
	Name string
	// Right aligns values on their right, as numbers are.
	Right bool
	// Min is the least width to which values may be shortened; 0 leaves them whole.
	Min int
	// Drop states which column is left out first where there is no room: the one with the
	// highest. 0 is never.
	Drop int
	// Wrap breaks a long value into lines below each other instead of shortening it.
	Wrap bool
	// Width is the width of the column in a [Log], whose later values are unknown.
	Width int
	// Style emphasises a value; nil does not.
	Style func(value string) Style
}

// gap is between two columns.
const gap = "  "

// Table collects rows, and writes them when all are there.
type Table struct {
	screen  *Screen
	columns []Column
	head    bool
	rows    [][]string
}

// NewTable is a table on w. Columns without any name give it no head.
func NewTable(w io.Writer, columns ...Column) *Table {
	return &Table{
		screen: screen(w), columns: columns,
		head: slices.ContainsFunc(columns, func(c Column) bool { return c.Name != "" }),
	}
}

// Row adds one. Values that are missing are empty.
func (t *Table) Row(values ...any) {
	t.rows = append(t.rows, cells(len(t.columns), values))
}

// cells are values as they are shown. Spaces before one indent it.
func cells(n int, values []any) []string {
	row := make([]string, n)
	for i, v := range values {
		s := fmt.Sprint(v)
		row[i] = s[:len(s)-len(strings.TrimLeft(s, " "))] + Line(s)
	}
	return row
}

// Flush writes the table, and names the columns for which it has no room.
func (t *Table) Flush() error {
	natural := make([]int, len(t.columns))
	for i, c := range t.columns {
		natural[i] = text.StringWidthWithoutEscSequences(c.Name)
		for _, row := range t.rows {
			natural[i] = max(natural[i], text.StringWidthWithoutEscSequences(row[i]))
		}
	}
	widths := fit(t.screen.Width, t.columns, natural)
	rows := t.rows
	if t.head {
		rows = append([][]string{names(t.columns)}, rows...)
	}
	if err := t.screen.write(t.columns, widths, rows, t.head); err != nil {
		return err
	}
	return t.screen.dropped(t.columns, natural, widths)
}

// dropped names the columns that do not fit.
func (s *Screen) dropped(columns []Column, natural, widths []int) error {
	var out []string
	for i, c := range columns {
		if natural[i] > 0 && widths[i] == 0 && c.Name != "" {
			out = append(out, c.Name)
		}
	}
	if out == nil {
		return nil
	}
	_, err := fmt.Fprintln(s, text.Snip("(no room for "+strings.Join(out, ", ")+"; --json has all)", s.Width, "…"))
	return err
}

// Pairs writes names and values in turn, two on a line.
func Pairs(w io.Writer, all ...any) error {
	t := NewTable(w, Column{}, Column{Wrap: true, Min: 20})
	for pair := range slices.Chunk(all, 2) {
		t.Row(pair...)
	}
	return t.Flush()
}

func names(columns []Column) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.Name
	}
	return out
}

// Log is a table that grows: each row is written as it comes.
type Log struct {
	screen  *Screen
	columns []Column
	widths  []int
}

// NewLog writes the head of a table that grows, and above it the columns for which it has no room.
// The last column takes what is left of the width.
func NewLog(w io.Writer, columns ...Column) (*Log, error) {
	natural := make([]int, len(columns))
	for i, c := range columns {
		natural[i] = max(c.Width, len(c.Name))
	}
	l := &Log{screen: screen(w), columns: columns}
	l.widths = fit(l.screen.Width, columns, natural)
	if err := l.screen.dropped(columns, natural, l.widths); err != nil {
		return nil, err
	}
	last := len(columns) - 1
	l.widths[last] = 0 // whatever is left
	if l.screen.Width > 0 {
		l.widths[last] = max(l.screen.Width-used(l.widths[:last]), 1)
	}
	return l, l.screen.write(columns, l.widths, [][]string{names(columns)}, true)
}

// used is the room that columns take, with the gap behind each.
func used(widths []int) (n int) {
	for _, w := range widths {
		if w > 0 {
			n += w + len(gap)
		}
	}
	return n
}

// Row writes one. On a terminal it takes the line where another program may have left a [Bar].
func (l *Log) Row(values ...any) error {
	if l.screen.Terminal() {
		if _, err := io.WriteString(l.screen, "\r"+text.EraseLine.Sprint()); err != nil {
			return err
		}
	}
	return l.screen.write(l.columns, l.widths, [][]string{cells(len(l.columns), values)}, false)
}

// fit returns how wide each column is; 0 is left out.
func fit(width int, columns []Column, natural []int) []int {
	out := slices.Clone(natural)
	for width > 0 {
		out = shrink(width, columns, out, false)
		if used(out)-len(gap) <= width {
			break
		}
		at := -1
		for i, c := range columns {
			if natural[i] > 0 && c.Drop > 0 && (at < 0 || c.Drop > columns[at].Drop) {
				at = i
			}
		}
		if at < 0 {
			return shrink(width, columns, out, true)
		}
		natural = slices.Clone(natural)
		natural[at] = 0
		out = slices.Clone(natural)
	}
	return out
}

// shrink takes from the widest column that may lose something, again and again: hard, each may down to a character.
func shrink(width int, columns []Column, natural []int, hard bool) []int {
	out := slices.Clone(natural)
	for over := used(out) - len(gap) - width; over > 0; over-- {
		at := -1
		for i, c := range columns {
			least := c.Min
			if hard {
				least = 1
			}
			if least > 0 && out[i] > least && (at < 0 || out[i] > out[at]) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		out[at]--
	}
	return out
}

// borderless has two spaces between columns and nothing else.
var borderless = table.Style{
	Name:    "borderless",
	Box:     table.BoxStyle{PaddingRight: gap},
	Options: table.OptionsNoBordersAndSeparators,
}

// write prints rows of columns that are so wide; a width of 0 leaves a column out, but
// for the last, which is then as wide as it is.
func (s *Screen) write(columns []Column, widths []int, rows [][]string, head bool) error {
	t := table.NewWriter()
	t.SetStyle(borderless)
	t.SuppressTrailingSpaces()
	var shown []int
	var configs []table.ColumnConfig
	for i, c := range columns {
		last := i == len(columns)-1
		if widths[i] == 0 && !(last && s.Width == 0) {
			continue
		}
		shown = append(shown, i)
		configs = append(configs, s.config(len(shown), c, widths[i]))
	}
	t.SetColumnConfigs(configs)
	for n, row := range rows {
		out := make(table.Row, len(shown))
		for k, i := range shown {
			out[k] = s.cell(columns[i], widths[i], row[i], head && n == 0)
		}
		t.AppendRow(out)
	}
	_, err := io.WriteString(s.Writer, strings.TrimRight(t.Render(), "\n")+"\n")
	return err
}

func (s *Screen) config(number int, c Column, width int) table.ColumnConfig {
	out := table.ColumnConfig{Number: number, WidthMin: width}
	if s.Width > 0 {
		out.WidthMax = width
	}
	if c.Right {
		out.Align = text.AlignRight
	}
	if c.Wrap {
		out.WidthMaxEnforcer = text.WrapSoft
	}
	return out
}

// cell is a value as it is printed.
func (s *Screen) cell(c Column, width int, value string, head bool) string {
	style := Plain
	switch {
	case head:
		style = Strong
	case c.Style != nil:
		style = c.Style(value)
	}
	if !c.Wrap && s.Width > 0 {
		value = text.Snip(value, width, "…")
	}
	return Paint(s, style, value)
}
