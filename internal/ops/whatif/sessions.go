package whatif

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/dustin/go-humanize"

	"compactd/internal/ops/diff"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// maxRows bounds the listed sessions.
const maxRows = 20

// WriteSessions prints what the first policy would have done with each session, those
// of which it would have taken most off first.
func (r *Report) WriteSessions(out io.Writer) error {
	c := r.Policies[0]
	rows := slices.Clone(c.BySession)
	slices.SortStableFunc(rows, func(a, b SessionFigures) int {
		return cmp.Or(cmp.Compare(b.Saved, a.Saved), cmp.Compare(b.Peak, a.Peak))
	})
	t := term.NewTable(out, term.Column{Name: "SESSION", Min: 16}, term.Column{Name: "TURNS", Right: true}, term.Column{Name: "PEAK", Right: true, Drop: 2},
		term.Column{Name: "WITHOUT COMPACTD", Style: overflowing}, term.Column{Name: "COMPACTED", Right: true}, term.Column{Name: "STAGES", Min: 12, Drop: 1},
		term.Column{Name: "SAVED", Right: true})
	for _, s := range rows[:min(len(rows), maxRows)] {
		t.Row(s.Session, s.Calls, humanize.Comma(int64(s.Peak)), without(s.Overflow), s.Compactions, diff.Used(s.Stages), humanize.Comma(int64(s.Saved)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := len(rows) - maxRows; more > 0 {
		fmt.Fprintf(out, "(and %d more, which --json lists)\n", more)
	}
	return r.writeSums(out)
}

func (r *Report) writeSums(out io.Writer) error {
	c := r.Policies[0]
	text := fmt.Sprintf("%s, %s: %s would have overflowed their model's window; %s would have kept %s of %s tokens out of the calls.",
		units.Count(r.Sessions, "session"), units.Count(c.Calls, "turn"), number(c.Overflowing), units.Count(c.Figures.Compactions, "compaction"),
		humanize.Comma(int64(c.Avoided)), humanize.Comma(int64(c.Sent+c.Avoided)))
	if c.Figures.Compactions == 0 {
		text = fmt.Sprintf("%s, %s: none would have been compacted. The largest call carried %s tokens.",
			units.Count(r.Sessions, "session"), units.Count(c.Calls, "turn"), humanize.Comma(int64(c.Peak)))
	}
	if c.Figures.Invalid > 0 {
		text += fmt.Sprintf(" %d histories are NOT VALID for their provider.", c.Figures.Invalid)
	} else if c.Figures.Compactions > 0 {
		text += " Every history was valid for its provider."
	}
	if missing := r.gaps.String(); missing != "" {
		text += "\n" + missing
	}
	fmt.Fprintln(out)
	return term.Wrapped(out, text)
}

func number(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

func without(overflow int64) string {
	if overflow == 0 {
		return "fits"
	}
	return fmt.Sprintf("full at turn %d", overflow)
}

func overflowing(value string) term.Style {
	if value == "fits" {
		return term.Plain
	}
	return term.Bad
}
