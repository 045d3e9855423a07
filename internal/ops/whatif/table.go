package whatif

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/ops/diff"
	"compactd/internal/ops/facts"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// line is one of a policy in the table.
type line struct {
	name  string
	value any
	shown bool // by this policy; a line that no policy shows is left out
}

// reasons in the order of their rows; those that no policy has are left out.
var reasons = []events.Reason{
	events.ReasonThreshold, events.ReasonLimit, events.ReasonBackground, events.ReasonEveryTurn, events.ReasonArrival, events.ReasonMedia,
	events.ReasonManual, events.ReasonOverflow, events.ReasonCost, events.ReasonIdle, events.ReasonAge, events.ReasonEntries, events.ReasonRewind,
}

// Write prints the policies side by side.
func (r *Report) Write(out io.Writer) error {
	of := "the session's model"
	if r.options.Writer != nil {
		of = "its writer"
	}
	fmt.Fprintf(out, "%s; a summary takes %gs, at the price of %s\n", units.Count(r.Sessions, "session"), r.SummarySeconds, of)
	for _, why := range slices.Sorted(maps.Keys(r.LeftOut)) {
		fmt.Fprintf(out, "%d left out: %s\n", r.LeftOut[why], why)
	}
	if missing := r.gaps.String(); missing != "" {
		if err := term.Wrapped(out, missing); err != nil {
			return err
		}
	}
	priced := slices.ContainsFunc(r.Policies, func(c *Column) bool { return c.Costs.Calls > 0 })
	columns := []term.Column{{Name: "", Min: 12}}
	var all [][]line // of each policy, in the same order
	for _, c := range r.Policies {
		columns, all = append(columns, term.Column{Name: c.Name, Right: true, Min: 8}), append(all, c.lines(priced))
	}
	fmt.Fprintln(out)
	t := term.NewTable(out, columns...)
	for i, l := range all[0] {
		row, shown := []any{l.name}, false
		for _, lines := range all {
			row, shown = append(row, text(lines[i].value)), shown || lines[i].shown
		}
		if shown {
			t.Row(row...)
		}
	}
	return t.Flush()
}

// text is a figure for people.
func text(v any) string {
	switch v := v.(type) {
	case measure.Tokens:
		return humanize.Comma(int64(v))
	case measure.Money:
		return units.Dollars(v)
	}
	return fmt.Sprint(v)
}

// lines are those of a policy. priced: some policy has calls whose prices are known.
func (c *Column) lines(priced bool) []line {
	lines := []line{
		{"config", c.Config, true},
		{"calls", c.Calls, true},
		{"compactions", c.Compactions, true},
	}
	for _, s := range diff.Stages {
		lines = append(lines, line{"  with " + string(s), c.Stages[s], c.Stages[s] > 0})
	}
	for _, why := range reasons {
		lines = append(lines, line{"  for " + strings.ReplaceAll(string(why), "_", " "), c.Reasons[why], c.Reasons[why] > 0})
	}
	lines = append(lines,
		line{"nothing to do", c.Nothing, c.Nothing > 0},
		line{"tokens of a call, mean", c.Mean, true},
		line{"  peak", c.Peak, true},
		line{"  all calls", c.Sent, true},
		line{"tokens saved", c.Saved, true},
		line{"summaries requested", c.Summaries.Requested, true},
		line{"  at the trigger", c.Summaries.Late, true},
		line{"  made", c.Summaries.Made, true},
		line{"  used", c.Summaries.Used, true},
		line{"  tokens read", c.Summaries.Input, true},
		line{"  tokens written", c.Summaries.Output, true},
		line{"cost of input", c.Costs.Input, priced},
		line{"  saved by compactions", c.Costs.Saved, priced},
		line{"  lost on caches", c.Costs.Lost, priced},
		line{"cost of summaries", c.Costs.Summaries, priced},
		line{"cost of both", c.Costs.All(), priced},
		line{"calls without a price", c.Calls - c.Costs.Calls, priced && c.Calls > c.Costs.Calls},
		line{"turns over the limit", c.Blocked, true},
		line{"calls over the window", c.Over, true},
		line{"files read again", c.Rereads, c.Rereads > 0},
		line{"calls made again", c.Reruns, c.Reruns > 0},
	)
	for _, k := range facts.Kinds {
		lines = append(lines, line{"facts: " + strings.ReplaceAll(k.Name, "_", " "), c.Facts[k.Name], true})
	}
	return append(lines,
		line{"invalid histories", c.Invalid, true},
		line{"events rejected", c.Rejected, c.Rejected > 0},
		line{"sessions that differ", c.Diverged, c.Diverged > 0})
}
