package replay

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"compactd/internal/events"
	"compactd/internal/ops/diff"
	"compactd/internal/ops/term"
	"compactd/internal/ops/transcript"
	"compactd/internal/ops/units"
)

// maxQuietRows bounds the sessions without a compaction that the table names.
const maxQuietRows = 5

// WriteTable writes the report for people: a row for each session, or for each
// compaction.
func (r *Report) WriteTable(w io.Writer, compactions bool) error {
	write := r.writeSessions
	if compactions {
		write = r.writeCompactions
	}
	if err := write(w); err != nil {
		return err
	}
	return r.writeSums(w)
}

func (r *Report) writeSessions(w io.Writer) error {
	t := term.NewTable(w, term.Column{Name: "SESSION", Min: 16}, term.Column{Name: "TURNS", Right: true, Drop: 1}, term.Column{Name: "PEAK", Right: true, Drop: 2},
		term.Column{Name: "COMPACTED", Right: true}, term.Column{Name: "STAGES", Min: 10, Drop: 3}, term.Column{Name: "SAVED", Right: true},
		term.Column{Name: "WITHOUT COMPACTD"}, term.Column{Name: "HISTORIES", Style: validity})
	quiet := 0
	for _, s := range r.Sessions {
		if len(s.Generations) == 0 {
			if quiet++; quiet > maxQuietRows {
				continue
			}
		}
		t.Row(s.Name, s.Turns, known(s.Peak()), len(s.Generations), cmp.Or(diff.Used(s.Stages()), "-"), known(s.Saved()), without(s.Overflow()), s.verdict())
	}
	if err := t.Flush(); err != nil || quiet <= maxQuietRows {
		return err
	}
	_, err := fmt.Fprintf(w, "(and %d more without a compaction)\n", quiet-maxQuietRows)
	return err
}

// validity makes a history stand out that its provider would refuse.
func validity(verdict string) term.Style {
	if strings.Contains(verdict, "INVALID") {
		return term.Bad
	}
	return term.Plain
}

func (r *Report) writeCompactions(w io.Writer) error {
	t := term.NewTable(w, term.Column{Name: "SESSION", Min: 16}, term.Column{Name: "GENERATION", Right: true}, term.Column{Name: "TURN", Right: true},
		term.Column{Name: "TOKENS", Right: true}, term.Column{Name: "STAGES", Min: 10}, term.Column{Name: "HISTORY", Style: validity, Min: 10})
	for _, s := range r.Sessions {
		name := s.Name
		for _, g := range s.Generations {
			t.Row(name, g.Number, g.Turn, fmt.Sprintf("%d → %d", g.Before, g.After), units.List(g.Stages), g.verdict())
			name = ""
		}
	}
	return t.Flush()
}

func (g Generation) verdict() string {
	if len(g.Violations) > 0 {
		return fmt.Sprintf("INVALID: %s at message %d", g.Violations[0].Rule, g.Violations[0].Index)
	}
	return fmt.Sprintf("%d messages, valid", g.Messages)
}

func (r *Report) writeSums(w io.Writer) error {
	s := r.Summary()
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, %s, %s; invalid histories %d, rejected events %d, undelivered outcomes %d\n", units.Count(s.Sessions, "session"),
		units.Count(s.Turns, "turn"), units.Count(s.Compactions, "compaction"), s.InvalidHistories, s.Rejected, s.Undelivered)
	fmt.Fprintf(&b, "%s saved, %s with a summary, %s would have overflowed\n",
		units.Count(s.TokensSaved, "token"), units.Count(s.Summaries, "compaction"), units.Count(s.WouldOverflow, "session"))
	if s.Cost != (events.Cost{}) {
		money := units.PricedBy(s.Cost.Unpriced)
		fmt.Fprintf(&b, "%s spent on input, %s on summaries; %s saved on calls until the next compaction of each, %s lost on caches\n",
			money(s.Cost.Input), money(s.Cost.Summaries), money(s.Cost.Saved), money(s.Cost.Lost))
	}
	if s.Repeated > 0 {
		fmt.Fprintf(&b, "%s whose result a compaction had taken out of view\n", units.Count(s.Repeated, "repeated call"))
	}
	if r.Unanswered > 0 {
		fmt.Fprintf(&b, "no worker returned the state of %s: the peak is that of the last outcome\n", units.Count(r.Unanswered, "session"))
	}
	if r.Earlier > 0 {
		fmt.Fprintf(&b, "%s published before this replay; --suffix TEXT replays the sessions under other names\n", units.Count(r.Earlier, "compaction"))
	}
	if r.Duplicates > 0 {
		fmt.Fprintf(w, "%s sent again under a random message id: the server had that of an earlier replay, or of another tenant\n", units.Count(r.Duplicates, "turn"))
	}
	var gaps transcript.Gaps
	for _, session := range r.Sessions {
		gaps.Add(session.Missing)
	}
	if missing := gaps.String(); missing != "" {
		fmt.Fprintln(&b, missing)
	}
	if len(r.Latencies) > 0 {
		fmt.Fprintf(&b, "turn to compacted event: p50 %.1f ms, p99 %.1f ms\n", s.P50, s.P99)
	}
	return term.Wrapped(w, strings.TrimRight(b.String(), "\n"))
}

// known is a number of tokens, or - for none.
func known(tokens int64) string {
	if tokens == 0 {
		return "-"
	}
	return fmt.Sprint(tokens)
}

func without(overflow int64) string {
	if overflow == 0 {
		return "fits"
	}
	return fmt.Sprintf("overflow at turn ~%d", overflow)
}

func (s *SessionReport) verdict() string {
	for _, g := range s.Generations {
		if len(g.Violations) > 0 {
			return fmt.Sprintf("%s of generation %d", g.verdict(), g.Number)
		}
	}
	if len(s.Generations) == 0 {
		return "-"
	}
	return "valid"
}
