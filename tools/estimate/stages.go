package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/compaction/render"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/ops/diff"
	"compactd/internal/stored"
)

// leastCalls is how many calls a stretch must have had before a stage is measured: with
// fewer there is nothing to remove.
const leastCalls = 20

// summaryUnits is the size of the summaries that stand in for those of a model.
const summaryUnits = 4000

// afterStages measures the estimate right after a compaction by one stage, without a usage
// of the view that it leaves. It compacts before every tenth call of a stretch, right after
// the usage of the call before. The provider's count is taken as that of the next prompt,
// less the removed content: of each growth of its count the share that left our estimate of
// the same messages. Text that a stage wrote counts as estimated.
func (e estimator) afterStages(s stretch) (map[events.Stage]sample, error) {
	c, err := e.config()
	if err != nil {
		return nil, err
	}
	r := reader{config: c, stretch: &s, seq: 1}
	l := compaction.NewLedger(address)
	out := map[events.Stage]sample{}
	var seen counted
	for i, call := range s.calls {
		step, err := r.step(call, i == 0)
		if err != nil {
			return nil, err
		}
		compaction.Apply(l, step.sent, nil, c)
		seen.add(step.input, l)
		if i >= leastCalls && i%10 == 0 && step.input > 0 && s.calls[i-1].input > 0 {
			for _, name := range diff.Stages {
				if err := e.compact(l, name, &seen, &r, out); err != nil {
					return nil, err
				}
			}
		}
		compaction.Apply(l, step.counted, nil, c)
	}
	return out, nil
}

// compact lets one stage halve the history of a copy of the ledger, and adds the error of
// its estimate. A stage that finds nothing to remove adds none.
func (e estimator) compact(l *compaction.Ledger, name events.Stage, seen *counted, r *reader, out map[events.Stage]sample) error {
	rows, err := stored.Rows(l)
	if err != nil {
		return err
	}
	if l, err = stored.ReadLedger(address, rows); err != nil {
		return err
	}
	c, err := e.only(name, seen.total(), r.stretch.window())
	if err != nil {
		return err
	}
	l.Describe(c)
	before := l.View()
	r.seq++
	q, err := stored.ReadRequest(events.KindCompact, []byte(`{"v":1}`), r.seq)
	if err != nil {
		return err
	}
	outs, next := compaction.Decide(l, q, c)
	next.Install(l)
	for _, o := range outs {
		if job, ok := o.Body.(*events.Job); ok {
			if err := r.summarize(l, job, c); err != nil {
				return err
			}
		}
	}
	if l.Generation() == 0 {
		return nil
	}
	after := l.View()
	rate := measure.RateOf(measure.Profiles[e.profile], r.stretch.model.Provider, r.stretch.model.Name)
	x := out[name]
	x.add(estimate(l), seen.without(before, after, &rate))
	out[name] = x
	return nil
}

// only is the config of a policy with one stage, whose target is half of an input.
func (e estimator) only(name events.Stage, input int64, window measure.Tokens) (*compaction.Config, error) {
	p := policy.Default()
	p.Profile = e.profile
	p.Restore.Enabled = false
	p.Prune.Enabled, p.Deduplicate.Enabled = name == events.StagePrune, name == events.StageDeduplicate
	p.Summarize.Enabled, p.Truncate.Enabled = name == events.StageSummarize, name == events.StageTruncate
	p.Prune.ProtectTokens, p.Prune.MinimumTokens, p.Deduplicate.Minimum = 10_000, 1, 1
	p.WindowTokens = window
	available := int64(window - measure.OutputReserve(window, 0))
	p.Target = measure.PPM(min(max(input*500_000/available, 1), int64(p.Threshold)-1))
	return compaction.NewConfig(p, measure.DefaultWindows())
}

// summarize gives the ledger the result of a job.
func (r *reader) summarize(l *compaction.Ledger, job *events.Job, c *compaction.Config) error {
	data, err := codec.Marshal(events.Summary{
		Header: events.Header{V: events.Version, ID: job.ID}, Job: job.ID,
		Text: strings.Repeat("word ", summaryUnits/5), Record: []events.RecordLine{}, Model: "none",
	})
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	r.seq++
	in, _, err := stored.ReadResult(data, r.seq)
	if err != nil {
		return fmt.Errorf("read summary: %w", err)
	}
	_, next := compaction.Decide(l, in, c)
	next.Install(l)
	return nil
}

// counted is what the provider counted of a stretch: by how much its count grew, and up to
// which turn the history had grown then.
type counted struct {
	input []int64
	turn  []int64
}

// add takes the count of a prompt; one without a count belongs to the next.
func (c *counted) add(input int64, l *compaction.Ledger) {
	if input > 0 {
		c.input, c.turn = append(c.input, input), append(c.turn, l.LastTurn())
	}
}

func (c *counted) total() int64 { return c.input[len(c.input)-1] }

// without is the count of the last prompt with one view in place of another.
func (c *counted) without(before, after *render.View, rate *measure.Rate) int64 {
	was, _ := c.tokens(before, rate)
	is, added := c.tokens(after, rate)
	left := c.input[0] + added
	for i := 1; i < len(c.input); i++ {
		if grown := c.input[i] - c.input[i-1]; was[i] > 0 {
			left += grown * is[i] / was[i]
		} else {
			left += grown
		}
	}
	return left
}

// tokens estimates the entries of a view by the growth that they are of, and those that no
// turn has: summaries and truncation notices.
func (c *counted) tokens(v *render.View, rate *measure.Rate) (by []int64, added int64) {
	by = make([]int64, len(c.turn))
	for i := range v.Entries {
		e := &v.Entries[i]
		at, _ := slices.BinarySearch(c.turn, int64(e.Turn))
		if e.Kind >= measure.KindTruncation || at == len(by) {
			added += int64(rate.Entry(e))
			continue
		}
		by[at] += int64(rate.Entry(e))
	}
	return by, added
}

// reportStages prints the errors right after each stage.
func reportStages(out io.Writer, all []stretch, by []estimator) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "estimator\t")
	for _, name := range diff.Stages {
		fmt.Fprintf(w, "after %s\t", name)
	}
	fmt.Fprintln(w)
	for _, e := range by {
		if e.counter != "" {
			continue
		}
		sum, err := e.allStages(all)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t", e.name)
		for _, name := range diff.Stages {
			fmt.Fprintf(w, "%s (%d)\t", sum[name], len(sum[name]))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func (e estimator) allStages(all []stretch) (map[events.Stage]sample, error) {
	sum := map[events.Stage]sample{}
	for _, s := range all {
		got, err := e.afterStages(s)
		if err != nil {
			return nil, fmt.Errorf("measure the stages of %s by %s: %w", s.name, e.name, err)
		}
		for name, x := range got {
			sum[name] = append(sum[name], x...)
		}
	}
	return sum, nil
}
