package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

const (
	longMessages     = 10_000
	shortMessages    = 10
	messagesPerTurn  = 2
	turnsPerBlock    = 512
	turnsPerShort    = 8 // that a short session takes: it must stay short
	plansPerRound    = 20
	planTarget       = 100_000 // PPM: no history gets there by its tool results alone
	triggerOfDefault = 800_000 // PPM
)

var someone = events.Address{Tenant: "t1", Session: "s1"}

// measureTurn compares blocks of turns: many short sessions that take a few, and
// one long session that takes the same ones.
func measureTurn(f *fleet, o options, p printer) error {
	c, err := compaction.NewConfig(compaction.DefaultPolicy(), compaction.DefaultWindows())
	if err != nil {
		return err
	}
	turns, err := f.turns(1 << 38)
	if err != nil {
		return err
	}
	rows, err := grow(turns, longMessages/messagesPerTurn, c).Rows()
	if err != nil {
		return err
	}
	var shorts, longs, ratios []float64
	for range o.rounds * o.blocks {
		runtime.GC() // what one side leaves behind is not collected in the other's time
		var short time.Duration
		for next := range slices.Chunk(turns[:turnsPerBlock], turnsPerShort) {
			l := grow(next, shortMessages/messagesPerTurn, c)
			short += take(l, next, turnsPerShort, c)
		}
		l, err := compaction.Restore(someone, rows)
		if err != nil {
			return err
		}
		take(l, turns, 1, c) // makes the sums, and room for more
		runtime.GC()
		long := take(l, turns, turnsPerBlock, c)
		shorts = append(shorts, float64(short.Nanoseconds())/turnsPerBlock)
		longs = append(longs, float64(long.Nanoseconds())/turnsPerBlock)
		ratios = append(ratios, long.Seconds()/short.Seconds())
	}
	p.line(lineTurn, median(ratios), "ratio")
	p.line("turn_cost_10_ns", median(shorts), "ns")
	p.line("turn_cost_10k_ns", median(longs), "ns")
	return nil
}

// turns reads the bodies as turns of a model with a window.
func (f *fleet) turns(window int64) ([]*compaction.Turn, error) {
	var out []*compaction.Turn
	for i, b := range f.bodies {
		t, _, err := compaction.ReadTurn(compaction.NewLedger(someone), withWindow(b, window), compaction.Seq(i+1))
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// grow returns a session of n turns.
func grow(turns []*compaction.Turn, n int, c *compaction.Config) *compaction.Ledger {
	l := compaction.NewLedger(someone)
	take(l, turns, n, c)
	return l
}

// take decides and applies n turns, and returns how long that took.
func take(l *compaction.Ledger, turns []*compaction.Turn, n int, c *compaction.Config) time.Duration {
	began := time.Now()
	for i := range n {
		t := turns[i%len(turns)]
		compaction.Apply(l, t, compaction.Decide(l, t, c), c)
	}
	return time.Since(began)
}

// measurePlan decides one turn again and again: Decide leaves the ledger as it is.
func measurePlan(f *fleet, o options, p printer) error {
	policy := compaction.DefaultPolicy()
	policy.Summarize.Enabled = false
	policy.Target = planTarget
	c, err := compaction.NewConfig(policy, compaction.DefaultWindows())
	if err != nil {
		return err
	}
	l, last, err := f.brim(c)
	if err != nil {
		return err
	}
	var us []float64
	for range o.rounds {
		runtime.GC()
		for range plansPerRound {
			began := time.Now()
			outs := compaction.Decide(l, last, c)
			us = append(us, float64(time.Since(began).Nanoseconds())/1e3)
			if err := planned(outs); err != nil {
				return err
			}
		}
	}
	p.line(linePlan, median(us), "us")
	return nil
}

// brim returns a session that the next turn makes 10,000 messages, and brings to
// its trigger.
func (f *fleet) brim(c *compaction.Config) (*compaction.Ledger, *compaction.Turn, error) {
	const n = longMessages / messagesPerTurn
	wide, err := f.turns(1 << 38)
	if err != nil {
		return nil, nil, err
	}
	tokens := grow(wide, n, c).Budget().EstimatedInput
	turns, err := f.turns(tokens*1e6/triggerOfDefault + reserve)
	if err != nil {
		return nil, nil, err
	}
	return grow(turns, n-1, c), turns[(n-1)%len(turns)], nil
}

// planned checks that a compaction is told and every stage has run.
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
