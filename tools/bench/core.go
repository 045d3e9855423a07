package main

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"time"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
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
	c, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		return err
	}
	turns, err := f.turns(windowOf(1 << 38))
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
		short := takeShort(turns, c)
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

// measureNames compares turns of sessions whose model no table has with those of one that a
// table has by its name. Each reports a larger input than the one before.
func measureNames(f *fleet, o options, p printer) error {
	c, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		return err
	}
	var turns [2][]*compaction.Turn
	for i, name := range []string{"claude-sonnet-4-20250514", "house-model-7"} {
		turns[i], err = f.turns(func(n int, messages string) []byte {
			return fmt.Appendf(nil, `{"v":1,"model":{"provider":"anthropic","name":%q,"max_output_tokens":%d},"format":"anthropic","messages":[%s],"usage":{"input_tokens":%d,"output_tokens":120}}`,
				name, reserve, messages, 1_000+n)
		})
		if err != nil {
			return err
		}
	}
	var ratios []float64
	for range o.rounds * o.blocks {
		runtime.GC()
		known := takeShort(turns[0], c)
		runtime.GC()
		ratios = append(ratios, takeShort(turns[1], c).Seconds()/known.Seconds())
	}
	p.line(lineNames, harness.Median(ratios), "ratio")
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

// windowOf writes the turns of a model with a window.
func windowOf(tokens int64) func(int, string) []byte {
	return func(_ int, messages string) []byte { return withWindow(messages, tokens) }
}

// turns reads the payloads as turns.
func (f *fleet) turns(write func(i int, messages string) []byte) ([]*compaction.Turn, error) {
	var out []*compaction.Turn
	for i, b := range f.payloads {
		t, _, err := stored.ReadTurn(new(compaction.Config), compaction.NewLedger(someone), write(i, b), measure.Seq(i+1))
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

// takeShort has short sessions take a few turns each, and returns how long those took.
func takeShort(turns []*compaction.Turn, c *compaction.Config) (d time.Duration) {
	for next := range slices.Chunk(turns[:turnsPerBlock], turnsPerShort) {
		l := grow(next, shortMessages/messagesPerTurn, c)
		d += take(l, next, turnsPerShort, c)
	}
	return d
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
