package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	"compactd/tools/harness"
)

// options say what to measure, and how much of it.
type options struct {
	run     *regexp.Regexp
	rounds  int
	turns   int    // in the backlog
	peer    string // checkout of the reference, "" for none
	esbuild string // module that bundles it
	profile string // begins the names of the drains' CPU profiles, "" for none
	page    string // file to write, "" for none

	seconds  int // of one round of latency
	blocks   int // of turns, for the cost of one
	sessions int // with 100 messages each, for the bytes of an entry
	idle     int // sessions with one turn
	large    int // turns that a worker process works off
	history  int // bytes of the history of a sync, without what is new
}

// want reports whether one of the lines was requested.
func (o *options) want(lines ...string) bool {
	for _, l := range lines {
		if o.run == nil || o.run.MatchString(l) {
			return true
		}
	}
	return false
}

// onlyNamed are the lines that take so long that they are measured only by name.
var onlyNamed = []string{lineRSS, linePartitions}

func main() {
	o := options{seconds: 15, blocks: 20, sessions: 1_000, idle: 100_000, history: 1 << 20}
	flag.IntVar(&o.rounds, "rounds", 3, "alternating rounds; every value is their median")
	flag.IntVar(&o.turns, "n", 100_000, "turns in the backlog, 100 a session")
	flag.IntVar(&o.large, "rss-turns", 1_000_000, "turns for rss_mb, 100 a session")
	flag.StringVar(&o.peer, "peer", "", "checkout of the reference, @juspay/neurolink, to race against; needs node")
	flag.StringVar(&o.esbuild, "esbuild", "console/node_modules/esbuild", "module that bundles the reference")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of each drain to `file`.0, .1, …, those of whole histories to `file`.full.0, …")
	flag.StringVar(&o.page, "write", "", "write what is printed into the `file` too")
	harness.Main("bench", "lines that match this `regexp`", func(ctx context.Context, only *regexp.Regexp, dir string) error {
		if o.run = only; o.rounds < 1 || flag.NArg() > 0 {
			return fmt.Errorf("-rounds is at least 1, and there are no arguments beside flags, as in -run turn_cost: %v", flag.Args())
		}
		var out bytes.Buffer
		if err := measureAll(ctx, o, dir, io.MultiWriter(os.Stdout, &out)); err != nil || o.page == "" {
			return err
		}
		return os.WriteFile(o.page, out.Bytes(), 0o644)
	})
}

// measureAll runs what is wanted. Measurements of the heap come first, as the server
// shares it.
func measureAll(ctx context.Context, o options, dir string, out io.Writer) error {
	f, err := newFleet(o.turns)
	if err != nil {
		return err
	}
	p := printer{out}
	p.header()
	everything, measured := o.run == nil || o.run.String() == "", false
	for _, step := range []struct {
		lines []string
		run   func() error
	}{
		{[]string{lineEntry}, func() error { return measureEntries(f, o, p) }},
		{[]string{lineIdle}, func() error { return measureIdle(f, o, p) }},
		{[]string{lineTurn}, func() error { return measureTurn(f, o, p) }},
		{[]string{lineNames}, func() error { return measureNames(f, o, p) }},
		{[]string{lineMeasure}, func() error { return measureMeasure(f, o, p) }},
		{[]string{lineDecode}, func() error { return measureDecode(f, o, p) }},
		{[]string{linePlan}, func() error { return measurePlan(f, o, p) }},
		{[]string{lineRender}, func() error { return measureRender(o, p) }},
		{[]string{linePeer}, func() error { return measurePeer(ctx, o, dir, p) }},
		{[]string{linePipeline, lineFull, lineRebuild}, func() error { return measureDrains(ctx, f, o, dir, p) }},
		{[]string{lineRestart}, func() error { return measureRestart(ctx, o, dir, p) }},
		{[]string{lineScaling}, func() error { return measureScaling(ctx, f, o, dir, p) }},
		{[]string{lineCost, lineIngest}, func() error { return measureCost(ctx, f, o, dir, p) }},
		{[]string{lineRest}, func() error { return measureRest(ctx, f, o, dir, p) }},
		{[]string{lineP50, lineP99}, func() error { return measureLatency(ctx, o, dir, p) }},
		{[]string{lineSync}, func() error { return measureSync(ctx, o, dir, p) }},
		{[]string{lineRSS}, func() error { return measureRSS(ctx, o, dir, p) }},
		{[]string{linePartitions}, func() error { return measurePartitions(ctx, o, dir, p) }},
	} {
		if !o.want(step.lines...) || everything && slices.Contains(onlyNamed, step.lines[0]) {
			continue
		}
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.lines[0], err)
		}
		measured = true
	}
	if !measured {
		return fmt.Errorf("no line matches %s; go doc ./tools/bench lists them", o.run)
	}
	return nil
}
