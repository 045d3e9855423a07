package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/stored"
	"compactd/tools/harness"
)

const (
	plansPerRound    = 20
	planTarget       = 100_000 // PPM: no history gets there by its tool results alone
	triggerOfDefault = 800_000 // PPM
)

// measurePlan decides one turn again and again: Decide leaves the ledger as it is.
func measurePlan(f *fleet, o options, p printer) error {
	settings := policy.Default()
	settings.Summarize.Enabled = false
	settings.Target = planTarget
	settings.Cache.History = 0 // else the history is cleared before it is full
	c, err := compaction.NewConfig(settings, measure.DefaultWindows())
	if err != nil {
		return err
	}
	l, last, err := f.brim(c)
	if err != nil {
		return err
	}
	entries, err := f.entries(longMessages / messagesPerTurn)
	if err != nil {
		return err
	}
	rate := measure.NewRate(measure.Profiles[settings.Profile], "anthropic")
	floor := func() error { return estimate(slices.Clone(entries), rate) }
	work := func() error {
		outs, _ := compaction.Decide(l, last, c)
		return planned(outs)
	}
	return p.race(o, linePlan, work, floor)
}

// race runs work and its floor in turn, and writes what work took and made, and
// the ratio.
func (p printer) race(o options, line string, work, floor func() error) error {
	var us, ratios, allocs []float64
	for range o.rounds {
		runtime.GC()
		for range plansPerRound {
			made := mallocs()
			took, err := timed(work)
			if err != nil {
				return err
			}
			allocs = append(allocs, mallocs()-made)
			least, err := timed(floor)
			if err != nil {
				return err
			}
			us = append(us, float64(took.Nanoseconds())/1e3)
			ratios = append(ratios, took.Seconds()/least.Seconds())
		}
	}
	name := strings.TrimSuffix(line, "_us")
	p.line(line, harness.Median(us), "us")
	p.line(name+"_over_floor", harness.Median(ratios), "ratio")
	p.line(name+"_allocs", harness.Median(allocs), "allocs")
	return nil
}

func timed(run func() error) (time.Duration, error) {
	began := time.Now()
	err := run()
	return time.Since(began), err
}

// entries is what n turns measure.
func (f *fleet) entries(n int) ([]measure.Entry, error) {
	var out []measure.Entry
	for i := range n {
		_, msgs, err := stored.ReadTurn(new(compaction.Config), compaction.NewLedger(someone), vast(f.payloads[i%len(f.payloads)]), 1)
		if err != nil {
			return nil, err
		}
		for k, m := range msgs {
			out = append(out, measure.Measure(m, measure.Entry{Turn: uint32(i + 1), Index: uint32(k)})...)
		}
	}
	return out, nil
}

// estimate adds up entries.
func estimate(entries []measure.Entry, r measure.Rate) error {
	var sum measure.Tokens
	for i := range entries {
		sum += r.Entry(&entries[i])
	}
	if sum == 0 {
		return errors.New("entries of no size")
	}
	return nil
}

// brim returns a session that the next turn makes 10,000 messages, and brings to
// its trigger.
func (f *fleet) brim(c *compaction.Config) (*compaction.Ledger, *compaction.Turn, error) {
	const n = longMessages / messagesPerTurn
	wide, err := f.turns(windowOf(1 << 38))
	if err != nil {
		return nil, nil, err
	}
	tokens := grow(wide, n, c).Budget().EstimatedInput
	turns, err := f.turns(windowOf(tokens*1e6/triggerOfDefault + reserve))
	if err != nil {
		return nil, nil, err
	}
	return grow(turns, n-1, c), turns[(n-1)%len(turns)], nil
}

// planned checks that a compaction is reported and every stage has run.
func planned(outs []compaction.Outcome) error {
	if len(outs) == 0 {
		return errors.New("nothing was decided")
	}
	body, ok := outs[0].Body.(*events.Compacted)
	if !ok || !body.Compacted || len(body.Stages) != 3 {
		return fmt.Errorf("not a compaction in three stages: %+v", outs[0].Body)
	}
	return nil
}
