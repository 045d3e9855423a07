package replay

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"compactd/internal/events"
	"compactd/internal/units"
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
	fmt.Fprintf(w, "\n%s, %s, %s; invalid histories %d, rejected events %d, unheard outcomes %d\n", units.Count(s.Sessions, "session"),
		units.Count(s.Turns, "turn"), units.Count(s.Compactions, "compaction"), s.InvalidHistories, s.Rejected, s.Unheard)
	fmt.Fprintf(w, "%s saved, %s with a summary, %s would have overflowed\n",
		units.Count(s.TokensSaved, "token"), units.Count(s.Summaries, "compaction"), units.Count(s.WouldOverflow, "session"))
	if r.Unasked > 0 {
		fmt.Fprintf(w, "%s could not be asked for the state: the peak is that of the last outcome\n", units.Count(r.Unasked, "session"))
	}
	if r.Earlier > 0 {
		fmt.Fprintf(w, "%s told before this replay; --suffix TEXT replays the sessions under other names\n", units.Count(r.Earlier, "compaction"))
	}
	if len(r.Latencies) > 0 {
		fmt.Fprintf(w, "turn to compacted event: p50 %.1f ms, p99 %.1f ms\n", s.P50, s.P99)
	}
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
