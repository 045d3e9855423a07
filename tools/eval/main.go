package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"

	"compactd/tools/harness"
)

// options say what to measure, and how much of it.
type options struct {
	run            *regexp.Regexp
	page           string // where what is printed is written too, "" for nowhere
	real, examples string // directories; of real sessions a list
	compactbench   string // directory of a checkout, "" for none
	compint, kit   string // the same of COMPINT and of the compaction-conformance-kit
	sessions       int    // of each corpus, 0 for all

	timings int // drawn for each session
	week    int // turns of a session of a week, at least
	backlog backlog
	load    load
}

// defaults are what the goals hold for.
func defaults() options {
	return options{
		real:     os.Getenv("COMPACTD_SESSIONS"),
		examples: "examples/sessions",

		compactbench: os.Getenv("COMPACTBENCH"),
		compint:      os.Getenv("COMPINT"),
		kit:          os.Getenv("CONFORMANCEKIT"),
		timings:      200,
		week:         3_000,
		backlog:      backlog{rounds: 100, jobs: 10_000, turns: 1_000},
		load:         load{modes: outages, rounds: 5, sessions: 20, turns: 25, warm: 14, rate: 600},
	}
}

func main() {
	o := defaults()
	flag.StringVar(&o.page, "write", "", "write what is printed into the `file`, if all is measured on real sessions")
	harness.Main("eval", "groups that match this `regexp`: retention, money, failures, needed, folding, fit, dialects, week, compactbench, compint, conformance_kit, growth, prepared, overflow, outage", func(ctx context.Context, only *regexp.Regexp, dir string) error {
		o.run = only
		var out bytes.Buffer
		if err := measureAll(ctx, o, dir, io.MultiWriter(os.Stdout, &out)); err != nil || o.page == "" {
			return err
		}
		if o.real == "" || only.String() != "" {
			printer{os.Stdout}.note("%s stays as it is: it is written when all is measured on real sessions", o.page)
			return nil
		}
		return writePage(o.page, out.String())
	})
}

// measureAll runs what is wanted.
func measureAll(ctx context.Context, o options, dir string, out io.Writer) error {
	p := printer{out}
	p.header()
	cs, err := readCorpora(o, p)
	if err != nil {
		return err
	}
	for _, group := range []struct {
		name string
		run  func() error
	}{
		{"retention", func() error { return evalRetention(ctx, cs, p) }},
		{"money", func() error { return evalMoney(ctx, cs, p) }},
		{"failures", func() error { return evalFailures(ctx, cs, p) }},
		{"needed", func() error { return evalNeeded(ctx, cs, p) }},
		{"folding", func() error { evalFolding(cs[0], p); return nil }},
		{"fit", func() error { return evalFit(ctx, cs[0], p) }},
		{"dialects", func() error { return evalDialects(ctx, cs[0], p) }},
		{"week", func() error { return evalWeek(ctx, cs[0], o.week, p) }},
		{"compactbench", func() error { return evalCompactBench(ctx, o.compactbench, p) }},
		{"compint", func() error { return evalCompint(ctx, o.compint, cs, p) }},
		{"conformance_kit", func() error { return evalKit(ctx, o.kit, p) }},
		{"growth", func() error { return evalGrowth(ctx, cs[0], p) }},
		{"prepared", func() error { return evalTiming(ctx, cs, o.timings, p) }},
		{"overflow", func() error { return evalOverflow(ctx, o.backlog, dir, p) }},
		{"outage", func() error { return evalOutage(ctx, o.load, dir, p) }},
	} {
		if o.run != nil && !o.run.MatchString(group.name) {
			continue
		}
		if err := group.run(); err != nil {
			return fmt.Errorf("%s: %w", group.name, err)
		}
	}
	return nil
}
