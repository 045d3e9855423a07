package replay

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"compactd/internal/events"
)

// maxQuietRows is how many sessions without a compaction the table names.
const maxQuietRows = 5

// WriteTable writes the report for people: a row for each session, or for each
// compaction.
func (r *Report) WriteTable(w io.Writer, compactions bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if compactions {
		r.writeCompactions(t)
	} else {
		r.writeSessions(t)
	}
	r.writeSums(t)
	return t.Flush()
}

func (r *Report) writeSessions(t io.Writer) {
	fmt.Fprintln(t, "SESSION\tTURNS\tPEAK\tCOMPACTIONS\tSTAGES\tSAVED\tWITHOUT COMPACTD\tHISTORIES")
	quiet := 0
	for _, s := range r.Sessions {
		if len(s.Generations) == 0 {
			if quiet++; quiet > maxQuietRows {
				continue
			}
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%s\t%s\t%s\t%s\n", s.Name, s.Turns,
			known(s.Peak()), len(s.Generations), stages(s.Stages()), known(s.Saved()), without(s.Overflow()), s.verdict())
	}
	if quiet > maxQuietRows {
		fmt.Fprintf(t, "(and %d more without a compaction)\n", quiet-maxQuietRows)
	}
}

func (r *Report) writeCompactions(t io.Writer) {
	fmt.Fprintln(t, "SESSION\tGENERATION\tTURN\tTOKENS\tSTAGES\tHISTORY")
	for _, s := range r.Sessions {
		name := s.Name
		for _, g := range s.Generations {
			fmt.Fprintf(t, "%s\t%d\t%d\t%d → %d\t%s\t%s\n", name, g.Number, g.Turn, g.Before, g.After, join(g.Stages), g.verdict())
			name = ""
		}
	}
}

func join(stages []events.Stage) string {
	s := make([]string, len(stages))
	for i, x := range stages {
		s[i] = string(x)
	}
	return strings.Join(s, ", ")
}

func (g Generation) verdict() string {
	if len(g.Violations) > 0 {
		return fmt.Sprintf("INVALID: %s at message %d", g.Violations[0].Rule, g.Violations[0].Index)
	}
	return fmt.Sprintf("%d messages, valid", g.Messages)
}

func (r *Report) writeSums(w io.Writer) {
	s := r.Summary()
	fmt.Fprintf(w, "\n%d sessions, %d turns, %d compactions; invalid histories %d, rejected events %d, unheard outcomes %d\n",
		s.Sessions, s.Turns, s.Compactions, s.InvalidHistories, s.Rejected, s.Unheard)
	fmt.Fprintf(w, "%d tokens saved, %d compactions with a summary, %d sessions would have overflowed\n", s.TokensSaved, s.Summaries, s.WouldOverflow)
	if r.Unasked > 0 {
		fmt.Fprintf(w, "%d sessions could not be asked how they stand: their peak is that of their last outcome\n", r.Unasked)
	}
	fmt.Fprintf(w, "turn to compacted event: p50 %.1f ms, p99 %.1f ms\n", s.P50, s.P99)
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

// stages lists counts in the order in which stages run.
func stages(n map[events.Stage]int) string {
	if len(n) == 0 {
		return "-"
	}
	var out []string
	for _, s := range slices.SortedFunc(maps.Keys(n), func(a, b events.Stage) int { return order(a) - order(b) }) {
		out = append(out, fmt.Sprintf("%s %d", s, n[s]))
	}
	return strings.Join(out, ", ")
}

func order(s events.Stage) int {
	return slices.Index([]events.Stage{events.StagePrune, events.StageDeduplicate, events.StageSummarize, events.StageTruncate}, s)
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
