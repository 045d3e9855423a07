package main

import (
	"context"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/request"
	"compactd/internal/events"
	"compactd/internal/ops/named"
	"compactd/internal/ops/term"
	"compactd/internal/ops/units"
)

type statsCmd struct {
	Session         named.Session `required:"" env:"COMPACTD_SESSION" help:"Session to query."`
	Provider        string        `placeholder:"NAME" help:"Provider of the model; its default model without --model."`
	Model           string        `placeholder:"NAME" help:"Model to use in place of the session's."`
	MaxOutputTokens int64         `placeholder:"N" help:"Reserve N tokens for the model's answer."`
}

// Run prints the figures.
func (c *statsCmd) Run(ctx context.Context, f *flags, nc *nats.Conn) error {
	a := f.address(c.Session)
	var s events.StatsResponse
	in := events.StatsRequest{
		About:    a.About(),
		Provider: c.Provider, Model: c.Model, MaxOutputTokens: c.MaxOutputTokens,
	}
	if err := request.SendOf(ctx, nc, events.SubjectStats, a.Tenant, in, &s); err != nil {
		return err
	}
	return f.showKnown(s.Known, a, s, func(w io.Writer) error { return writeStats(w, a, &s) })
}

func writeStats(w io.Writer, a events.Address, s *events.StatsResponse) error {
	summary := "none"
	switch {
	case s.Prepared:
		summary = "ready"
	case s.Waiting:
		summary = "requested"
	}
	b := &s.Budget
	for _, warning := range s.Warnings {
		if _, err := fmt.Fprintf(w, "%s: %s\n%s\n\n", warning.Code, warning.Message, warning.Hint); err != nil {
			return err
		}
	}
	money := units.PricedBy(s.Cost.Unpriced)
	learnt := ""
	if s.LongestAnswer > 0 {
		learnt = fmt.Sprintf("; the longest so far had %d", s.LongestAnswer)
	}
	return term.Pairs(w,
		"session", named.Show(a),
		"turns", s.Turns,
		"parked turns", s.Parked,
		"messages", s.Messages,
		"generation", s.Generation,
		"level", b.Level,
		"estimated input", fmt.Sprintf("%d tokens", b.EstimatedInput),
		"available input", fmt.Sprintf("%d tokens", b.AvailableInput),
		"context window", fmt.Sprintf("%d tokens, %d of them for the answer%s", b.ContextWindow, b.OutputReserve, learnt),
		"usage", fmt.Sprintf("%.1f %% of the available input, %.1f %% of the window",
			float64(b.UsagePPM)/10_000, 100*float64(b.EstimatedInput)/float64(max(b.ContextWindow, 1))),
		"left to the trigger", fmt.Sprintf("%d %%", b.PercentLeft),
		"needs compaction", s.NeedsCompaction,
		"done again", fmt.Sprintf("%d reads, %d other calls", s.Rereads, s.Reruns),
		"spent on input", money(s.Cost.Input),
		"saved on input", money(s.Cost.Saved),
		"lost on caches", money(s.Cost.Lost),
		"spent on summaries", money(s.Cost.Summaries),
		"summary", summary)
}
