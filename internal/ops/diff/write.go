package diff

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"compactd/internal/events/dialect"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// How many rows of each kind are shown one by one; the others are counted.
const (
	firstKept   = 1
	lastKept    = 2
	firstGone   = 5
	lastGone    = 1
	firstEdited = 6
	lastEdited  = 2
	textLines   = 8 // of a summary
)

// actions in the order in which they are counted.
var actions = []Action{Kept, Cleared, Deduplicated, Shortened, Summarized, Truncated, Summary, Marker, Added}

// Write prints before, after, and what went.
func (c *Change) Write(w io.Writer) error {
	lines := Lines(c.Before, c.After)
	before, after, tokens := c.TokensBefore, c.TokensAfter, exact
	if before == 0 {
		before, after, tokens = c.Count(c.Before...), c.Count(c.After...), estimate
	}
	if err := term.Wrapped(w, term.Paint(w, term.Strong, c.Title)); err != nil {
		return err
	}
	sums := term.NewTable(w, term.Column{}, term.Column{Right: true}, term.Column{Right: true}, term.Column{Wrap: true, Min: 20})
	sums.Row("before", units.Count(len(c.Before), "message"), tokens(before))
	sums.Row("after", units.Count(len(c.After), "message"), tokens(after))
	sums.Row("went", "", tokens(before-after), c.went(lines))
	if err := sums.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := c.table(w, lines); err != nil {
		return err
	}
	return c.tail(w, lines)
}

func exact(n int64) string { return humanize.Comma(n) + " tokens" }

func estimate(n int64) string { return "~" + exact(n) }

// went counts what is not as it was.
func (c *Change) went(lines []Line) string {
	return strings.Join(counts(lines, []Action{Cleared, Deduplicated, Shortened, Summarized, Truncated}), ", ")
}

// counts states how many lines each of some actions has, but for those without any.
func counts(lines []Line, of []Action) (out []string) {
	sums := map[Action]int{}
	for _, l := range lines {
		sums[l.Action]++
	}
	for _, f := range of {
		if n := sums[f]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, f))
		}
	}
	return out
}

// table has a row for each message that is worth one.
func (c *Change) table(w io.Writer, lines []Line) error {
	t := term.NewTable(w, term.Column{Name: "#", Right: true}, term.Column{Name: "ROLE", Drop: 1}, term.Column{Name: "BEFORE", Right: true},
		term.Column{Name: "AFTER", Right: true}, term.Column{Name: "NOW", Min: 12, Style: actionStyle}, term.Column{Name: "MESSAGE", Min: 20})
	shown := worth(lines)
	number := 0
	var skipped []Line
	for i, l := range lines {
		if l.Before != nil {
			number++
		}
		if !shown[i] {
			skipped = append(skipped, l)
			continue
		}
		c.skip(t, skipped)
		skipped = nil
		at, m := "", l.After
		if l.Before != nil {
			at, m = fmt.Sprint(number), l.Before
		}
		t.Row(at, m.Role, c.tokens(l.Before), c.tokens(l.After), l.Action, Gist(*m))
	}
	c.skip(t, skipped)
	return t.Flush()
}

// worth states which lines are shown: the first and last of each kind, and all that is new.
func worth(lines []Line) map[int]bool {
	of := map[Action][]int{}
	for i, l := range lines {
		of[l.Action] = append(of[l.Action], i)
	}
	shown := map[int]bool{}
	for f, at := range of {
		first, last := firstEdited, lastEdited
		switch f {
		case Kept:
			first, last = firstKept, lastKept
		case Summarized, Truncated:
			first, last = firstGone, lastGone
		case Summary, Marker, Added, Cleared, Deduplicated, Shortened:
		}
		for n, i := range at {
			if n < first || n >= len(at)-last {
				shown[i] = true
			}
		}
	}
	for i := range lines { // a row that stands for one is no shorter
		if !shown[i] && (i == 0 || shown[i-1]) && (i+1 == len(lines) || shown[i+1]) {
			shown[i] = true
		}
	}
	return shown
}

// skip adds a row that stands for several.
func (c *Change) skip(t *term.Table, lines []Line) {
	if len(lines) == 0 {
		return
	}
	var before, after []dialect.Message
	for _, l := range lines {
		if l.Before != nil {
			before = append(before, *l.Before)
		}
		if l.After != nil {
			after = append(after, *l.After)
		}
	}
	what := counts(lines, actions)
	if len(what) == 1 {
		what[0] = strings.TrimPrefix(what[0], fmt.Sprint(len(lines), " "))
	}
	t.Row("…", "", c.sum(before), c.sum(after), strings.Join(what, ", "), units.Count(len(lines), "message"))
}

func (c *Change) tokens(m *dialect.Message) string {
	if m == nil {
		return "-"
	}
	return humanize.Comma(c.Count(*m))
}

func (c *Change) sum(messages []dialect.Message) string {
	if len(messages) == 0 {
		return "-"
	}
	return humanize.Comma(c.Count(messages...))
}

func actionStyle(value string) term.Style {
	switch Action(value) {
	case Kept:
		return term.Faint
	case Cleared, Deduplicated, Shortened:
		return term.Notice
	case Summarized, Truncated:
		return term.Bad
	case Summary, Marker, Added:
		return term.Good
	}
	return term.Plain
}

// tail shows how the summary begins, and where the originals are.
func (c *Change) tail(w io.Writer, lines []Line) error {
	at := slices.IndexFunc(lines, func(l Line) bool { return l.Action == Summary })
	if at >= 0 {
		fmt.Fprintln(w, "\nThe summary begins:")
		_, summary, _ := strings.Cut(text(lines[at].After), "<condensed-summary>")
		summary, _, _ = strings.Cut(summary, "</condensed-summary>")
		n := 0
		for line := range strings.Lines(summary) {
			if line = term.Line(line); line == "" {
				continue
			}
			if n++; n > textLines {
				break
			}
			fmt.Fprintln(w, "  "+term.Fit(w, 2, line))
		}
	}
	if c.Recall == "" {
		return nil
	}
	fmt.Fprintln(w)
	return term.Wrapped(w, "Nothing is lost: the log keeps every message as it was published. "+c.Recall)
}
