package whatif

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"compactd/internal/events"
	"compactd/internal/ops/diff"
	"compactd/internal/ops/facts"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

// row is one line of the table, with a figure of each policy.
type row struct {
	name string
	of   func(*Figures) string
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
	columns := []term.Column{{Name: "", Min: 12}}
	for _, c := range r.Policies {
		columns = append(columns, term.Column{Name: c.Name, Right: true, Min: 8})
	}
	fmt.Fprintln(out)
	t := term.NewTable(out, columns...)
	r.line(t, "config", func(c *Column) string { return c.Config })
	for _, x := range r.rows() {
		r.line(t, x.name, func(c *Column) string { return x.of(&c.Figures) })
	}
	return t.Flush()
}

// line writes a name to the left, and what each policy has to the right.
func (r *Report) line(t *term.Table, name string, of func(*Column) string) {
	row := []any{name}
	for _, c := range r.Policies {
		row = append(row, of(c))
	}
	t.Row(row...)
}

func (r *Report) rows() []row {
	rows := []row{
		{"calls", of(func(f *Figures) int64 { return f.Calls })},
		{"compactions", of(func(f *Figures) int { return f.Compactions })},
	}
	for _, s := range diff.Stages {
		rows = r.known(rows, "  with "+string(s), func(f *Figures) int { return f.Stages[s] })
	}
	for _, why := range reasons {
		rows = r.known(rows, "  for "+strings.ReplaceAll(string(why), "_", " "), func(f *Figures) int { return f.Reasons[why] })
	}
	rows = r.known(rows, "nothing to do", func(f *Figures) int { return f.Nothing })
	rows = append(rows,
		row{"tokens of a call, mean", func(f *Figures) string { return humanize.Comma(int64(f.Mean)) }},
		row{"  peak", func(f *Figures) string { return humanize.Comma(int64(f.Peak)) }},
		row{"  all calls", func(f *Figures) string { return humanize.Comma(int64(f.Sent)) }},
		row{"tokens saved", func(f *Figures) string { return humanize.Comma(int64(f.Saved)) }},
		row{"summaries requested", of(func(f *Figures) int { return f.Summaries.Requested })},
		row{"  at the trigger", of(func(f *Figures) int { return f.Summaries.Late })},
		row{"  made", of(func(f *Figures) int { return f.Summaries.Made })},
		row{"  used", of(func(f *Figures) int { return f.Summaries.Used })},
		row{"  tokens read", func(f *Figures) string { return humanize.Comma(int64(f.Summaries.Input)) }},
		row{"  tokens written", func(f *Figures) string { return humanize.Comma(int64(f.Summaries.Output)) }},
	)
	rows = r.costs(rows)
	rows = append(rows,
		row{"turns over the limit", of(func(f *Figures) int { return f.Blocked })},
		row{"calls over the window", of(func(f *Figures) int { return f.Over })},
	)
	rows = r.known(rows, "files read again", func(f *Figures) int { return int(f.Rereads) })
	rows = r.known(rows, "calls made again", func(f *Figures) int { return int(f.Reruns) })
	for _, k := range facts.Kinds {
		rows = append(rows, row{"facts: " + strings.ReplaceAll(k.Name, "_", " "), func(f *Figures) string { return f.Facts[k.Name].String() }})
	}
	rows = append(rows, row{"invalid histories", of(func(f *Figures) int { return f.Invalid })})
	rows = r.known(rows, "events rejected", func(f *Figures) int { return f.Rejected })
	return r.known(rows, "sessions that differ", func(f *Figures) int { return f.Diverged })
}

// costs adds what the calls cost, where the prices of some are known.
func (r *Report) costs(rows []row) []row {
	if !slices.ContainsFunc(r.Policies, func(c *Column) bool { return c.Costs.Calls > 0 }) {
		return rows
	}
	rows = append(rows,
		row{"cost of input", func(f *Figures) string { return units.Dollars(f.Costs.Input) }},
		row{"  saved by compactions", func(f *Figures) string { return units.Dollars(f.Costs.Saved) }},
		row{"  lost on caches", func(f *Figures) string { return units.Dollars(f.Costs.Lost) }},
		row{"cost of summaries", func(f *Figures) string { return units.Dollars(f.Costs.Summaries) }},
		row{"cost of both", func(f *Figures) string { return units.Dollars(f.Costs.All()) }},
	)
	return r.known(rows, "calls without a price", func(f *Figures) int { return int(f.Calls - f.Costs.Calls) })
}

// known adds a row that some policy has something for.
func (r *Report) known(rows []row, name string, n func(*Figures) int) []row {
	if !slices.ContainsFunc(r.Policies, func(c *Column) bool { return n(&c.Figures) > 0 }) {
		return rows
	}
	return append(rows, row{name, of(n)})
}

func of[N int | int64](n func(*Figures) N) func(*Figures) string {
	return func(f *Figures) string { return strconv.FormatInt(int64(n(f)), 10) }
}
