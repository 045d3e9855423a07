package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"compactd/internal/compaction/policy"
	"compactd/internal/ops/facts"
	"compactd/tools/harness"
)

// evalTiming prints how often a summary was ready when a compaction needed it, how long
// agents waited, and what summarizers read for it. The lines with a goal are those of the
// first corpus.
func evalTiming(ctx context.Context, cs []*corpus, drawn int, p printer) error {
	for i, c := range cs {
		suffix, goals := "", []goal{atMost(1), atLeast(0.97), atMost(0), atMost(1.2)}
		if i > 0 {
			suffix, goals = "/"+c.name, make([]goal, 4)
		}
		present := policy.Default()
		drawn := min(drawn, max(1, mostTimings/max(1, len(c.timed()))))
		own, err := waitsOf(ctx, c, present, 0, modelTime)
		if err != nil {
			return err
		}
		w, err := waitsOf(ctx, c, present, drawn, modelTime)
		if err != nil {
			return err
		}
		if own.ready+own.late+w.ready+w.late == 0 {
			p.note("prepared_share%s: no compaction needed a summary", suffix)
			continue
		}
		old := present
		old.Summarize.SummarySeconds = 0
		fixed, err := waitsOf(ctx, c, old, drawn, modelTime)
		if err != nil {
			return err
		}
		p.line("prepared_misses_own_timing"+suffix, float64(own.late-own.bursts), goals[0], own.detail(c, 1))
		p.line("prepared_share"+suffix, w.share(), goals[1], w.detail(c, drawn))
		p.line("prepared_share"+suffix+"/with_bursts", facts.Share{Kept: w.ready, All: w.ready + w.late}.Ratio(), goal{}, "")
		p.line("prepared_share"+suffix+"/at_prepare", fixed.share(), goal{}, fixed.detail(c, drawn))
		p.line("summarizer_tokens_ratio"+suffix, float64(w.read)/float64(fixed.read), goals[3],
			fmt.Sprintf("new text, %s over %s tokens a session; with the summaries read again %s over %s",
				w.each(c, drawn, w.read), fixed.each(c, drawn, fixed.read), w.each(c, drawn, w.read+w.reread), fixed.each(c, drawn, fixed.read+fixed.reread)))
		for _, model := range modelTimes {
			for _, x := range []struct {
				policy policy.Policy
				suffix string
			}{{present, ""}, {old, "/at_prepare"}} {
				w, err := waitsOf(ctx, c, x.policy, max(drawn/5, 1), model)
				if err != nil {
					return err
				}
				p.line(fmt.Sprintf("prepared_share%s/%.0fs%s", suffix, model.Seconds(), x.suffix), w.share(), goal{}, "")
			}
		}
		blocked := slices.Concat(own.blocked, w.blocked)
		p.line("blocked_ms_p99"+suffix, harness.Quantile(blocked, 0.99), goals[2], fmt.Sprintf("the most %s of %d turns", number(harness.Quantile(blocked, 1)), len(blocked)))
	}
	return nil
}

// mostTimings are drawn for all sessions of a corpus together, at most.
const mostTimings = 800

// modelTimes are those of further models: from a small one to one that thinks.
var modelTimes = []time.Duration{10 * time.Second, 30 * time.Second, 120 * time.Second, 240 * time.Second}

// detail states what a share is made of, and what it cost.
func (w *waits) detail(c *corpus, runs int) string {
	n := float64(len(c.timed()) * runs)
	return fmt.Sprintf("%d of %d ready, and %d bursts shorter than the model's time; a session has %.2f jobs for %.2f summaries, %.0f %% of the input is taken after a compaction",
		w.ready, w.ready+w.late-w.bursts, w.bursts, float64(w.jobs)/n, float64(w.condensed)/n, 100*mean(w.after))
}

// each is a sum as a mean of the simulated sessions.
func (w *waits) each(c *corpus, runs int, sum int64) string {
	return number(float64(sum / int64(len(c.timed())*runs)))
}
