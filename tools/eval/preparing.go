package main

import (
	"context"
	"fmt"
	"slices"

	"compactd/internal/compaction"
	"compactd/tools/harness"
)

// prepares are shares at which a summary could be requested, beside the default.
var prepares = []compaction.PPM{650_000, 600_000, 550_000, 500_000}

// evalTiming prints how often a summary was ready when a compaction needed it, and
// how long agents waited. The lines with a goal are those of the first corpus.
func evalTiming(ctx context.Context, cs []*corpus, drawn int, p printer) error {
	for i, c := range cs {
		suffix, goals := "", []goal{atMost(1), atLeast(0.95), atMost(0)}
		if i > 0 {
			suffix, goals = "/"+c.name, make([]goal, 3)
		}
		policy := compaction.DefaultPolicy()
		own, err := waitsUnder(ctx, c, policy, 0)
		if err != nil {
			return err
		}
		w, err := waitsUnder(ctx, c, policy, drawn)
		if err != nil {
			return err
		}
		if own.ready+own.late+w.ready+w.late == 0 {
			p.note("prepared_share%s: no compaction needed a summary", suffix)
			continue
		}
		p.line("prepared_misses_own_timing"+suffix, float64(own.late), goals[0], own.detail(c, 1))
		p.line("prepared_share"+suffix, w.share(), goals[1], w.detail(c, drawn))
		blocked := slices.Concat(own.blocked, w.blocked)
		p.line("blocked_ms_p99"+suffix, harness.Quantile(blocked, 0.99), goals[2], fmt.Sprintf("the most %s of %d turns", number(harness.Quantile(blocked, 1)), len(blocked)))
		if err := p.prepares(ctx, c, suffix, drawn); err != nil {
			return err
		}
	}
	return nil
}

// prepares prints what the share would be, were summaries requested earlier.
func (p printer) prepares(ctx context.Context, c *corpus, suffix string, drawn int) error {
	for _, share := range prepares {
		policy := compaction.DefaultPolicy()
		policy.Summarize.Prepare = share
		w, err := waitsUnder(ctx, c, policy, drawn)
		if err != nil {
			return err
		}
		p.line("prepared_share"+suffix+"/prepare_"+number(float64(share)/1e6), w.share(), goal{}, w.detail(c, drawn))
	}
	return nil
}

func waitsUnder(ctx context.Context, c *corpus, p compaction.Policy, drawn int) (*waits, error) {
	config, err := compaction.NewConfig(p, compaction.DefaultWindows())
	if err != nil {
		return nil, err
	}
	return waitsOf(ctx, c, config, drawn)
}

// detail states what a share is made of, and what it cost.
func (w *waits) detail(c *corpus, runs int) string {
	n := float64(len(c.timed()) * runs)
	return fmt.Sprintf("%d of %d ready; a session has %.2f jobs for %.2f summaries, %.0f %% of the input is taken after a compaction",
		w.ready, w.ready+w.late, float64(w.jobs)/n, float64(w.condensed)/n, 100*mean(w.after))
}
