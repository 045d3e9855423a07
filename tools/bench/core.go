package main

import (
	"crypto/sha256"
	"runtime"
	"slices"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/stored"
	"compactd/tools/harness"
)

const (
	longMessages    = 10_000
	shortMessages   = 10
	messagesPerTurn = 2
	turnsPerBlock   = 512
	turnsPerShort   = 8 // that a short session takes: it must stay short
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
	rows, err := stored.Rows(grow(turns, longMessages/messagesPerTurn, c))
	if err != nil {
		return err
	}
	var shorts, longs, ratios, overs, allocs []float64
	for range o.rounds * o.blocks {
		runtime.GC() // what one side leaves behind is not collected in the other's time
		var short time.Duration
		for next := range slices.Chunk(turns[:turnsPerBlock], turnsPerShort) {
			l := grow(next, shortMessages/messagesPerTurn, c)
			short += take(l, next, turnsPerShort, c)
		}
		l, err := stored.ReadLedger(someone, rows)
		if err != nil {
			return err
		}
		take(l, turns, 1, c) // makes the sums, and room for more
		runtime.GC()
		made := mallocs()
		long := take(l, turns, turnsPerBlock, c)
		allocs = append(allocs, (mallocs()-made)/turnsPerBlock)
		overs = append(overs, long.Seconds()/f.hash(turnsPerBlock).Seconds())
		shorts = append(shorts, float64(short.Nanoseconds())/turnsPerBlock)
		longs = append(longs, float64(long.Nanoseconds())/turnsPerBlock)
		ratios = append(ratios, long.Seconds()/short.Seconds())
	}
	p.line(lineTurn, harness.Median(ratios), "ratio")
	p.line("turn_cost_10_ns", harness.Median(shorts), "ns")
	p.line("turn_cost_10k_ns", harness.Median(longs), "ns")
	p.line("turn_cost_10k_over_hash", harness.Median(overs), "ratio")
	p.line("turn_cost_10k_allocs", harness.Median(allocs), "allocs")
	return nil
}

// hash looks at every byte of n turns once, and returns how long that took.
func (f *fleet) hash(n int) time.Duration {
	payloads := make([][]byte, n)
	for i := range payloads {
		payloads[i] = vast(f.payloads[i%len(f.payloads)])
	}
	began := time.Now()
	for _, b := range payloads {
		sha256.Sum256(b)
	}
	return time.Since(began)
}

// mallocs is how many objects the program has made so far.
func mallocs() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Mallocs)
}

// turns reads the payloads as turns of a model with a window.
func (f *fleet) turns(window int64) ([]*compaction.Turn, error) {
	var out []*compaction.Turn
	for i, b := range f.payloads {
		t, _, err := stored.ReadTurn(new(compaction.Config), compaction.NewLedger(someone), withWindow(b, window), compaction.Seq(i+1))
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

// take decides n turns and installs the ledgers, and returns how long that took.
func take(l *compaction.Ledger, turns []*compaction.Turn, n int, c *compaction.Config) time.Duration {
	var next compaction.Next
	began := time.Now()
	for i := range n {
		next.Decide(l, turns[i%len(turns)], c)
		next.Install(l)
	}
	return time.Since(began)
}
