// Command bench measures how fast compactd is on the machine it runs on. It
// starts a NATS server of its own in a temporary directory and real workers beside
// it, and prints a header and lines of the form
//
//	bench <name> <value> <unit>
//
// Every value is the median of alternating rounds. Machines differ, ratios hold:
// a ratio is taken within one round, so that both sides saw the same machine.
//
//	go run ./tools/bench                      # everything, in less than 4 minutes
//	go run ./tools/bench -run pipeline -rounds 7
//	TMPDIR=/mnt/disk go run ./tools/bench     # streams and ledgers on that disk
//
// # Lines
//
// pipeline_over_floor: turns/s of a backlog that one worker drains, over turns/s
// of the floor. The drain is the whole worker: 8 partitions, turns of 1.5 KiB,
// sessions of 100 turns of which each gets one outcome of less than 2 KiB,
// checkpoints on; it ends when every outcome is stored with its marker. The floor
// is an ordered consumer for each partition of the same log, with the same
// library, the same pulls and events.DecodeTurn, and nothing else. With the
// default -n there are 1,000 sessions. Beside it stand both rates, the payload
// bytes of the log (in) and of the outcomes (out), the outcomes, the commits and
// the checkpoints; and floor_read_turns_per_s, a floor that reads the blocks of
// the messages too, which DecodeTurn leaves as they are. pipeline_cpu_us and
// floor_cpu_us are what a turn takes of all cores, the server's share included.
//
// pipeline_full_over_floor: the same log under smaller windows, so that sessions
// are compacted and every outcome carries a whole history.
//
// rebuild_turns_per_s: a worker without checkpoints starts on the drained log;
// turns over the time until it is ready. rebuild_snapshot_turns_per_s is the same
// for one on an empty directory that finds the snapshots of the one that drained.
//
// restart_s: from the start of a worker until it is ready, with 100,000 sessions of
// one turn on file; restart_snapshot_s on an empty directory, restart_log_s without
// files and snapshots. restart_over_floor is the first over reading the files once.
//
// rss_mb: the most memory that a worker process holds, mapped ledger files included,
// while it works off 1 million turns over 10,000 sessions, every 5,000th with a result
// of 900 KB, under GOMEMLIMIT=256MiB and windows that make every session compact;
// rss_anon_mb is without the files. It takes minutes, so it must be requested by name.
//
// turn_cost_10k_over_10: Decide and Install of a turn in a session of 10,000
// messages, over the same in a session of 10. Beside it stand both costs, the
// allocations of a turn in the long one, and its cost over that of looking at every
// byte of the turn once (turn_cost_10k_over_hash, SHA-256).
//
// measure_mb_s: text that Measure takes per second, in messages of an answer with a
// call, and a result of some KiB. measure_over_floor is its speed over that of a
// loop that sums up the same bytes.
//
// plan_10k_us: Decide of the turn that makes a session of 10,000 messages, 15,000
// entries, reach its trigger, with a target so low that every stage runs. It is the
// plan and the outcome around it, without text. The floor copies as many entries
// and estimates each once.
//
// render_1k_us: Decide and Render of such a turn in a session of 1,000 messages of
// 800 characters, 30 % of them results of tools; most of the history stays. The
// floor copies the messages that were written.
//
// latency_2k_p50_ms, latency_2k_p99_ms: from the moment a turn was to be
// published, at 2,000 turns/s whatever happens, until a plain subscriber has the
// outcome. A publisher that comes late counts.
//
// workers_2_over_1, workers_4_over_1: the rate at which so many worker processes work
// off one log on this machine, from their start, over that of one.
//
// bytes_per_entry: what the heap grows by for each ledger entry, of 1,000
// sessions with 100 messages each; everything a session needs is in it.
//
// bytes_per_idle_session: what the heap grows by for each of 100,000 sessions of
// one turn.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

// options say what to measure, and how much of it.
type options struct {
	run     *regexp.Regexp
	rounds  int
	turns   int    // in the backlog
	profile string // begins the names of the drains' CPU profiles, "" for none

	seconds  int // of one round of latency
	blocks   int // of turns, for the cost of one
	sessions int // with 100 messages each, for the bytes of an entry
	idle     int // sessions with one turn
	large    int // turns that a worker process works off
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

// named reports whether a line was requested, and not just everything.
func (o *options) named(line string) bool {
	return o.run != nil && o.run.String() != "" && o.run.MatchString(line)
}

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// command reads the flags and measures until done or interrupted.
func command() (err error) {
	o := options{seconds: 15, blocks: 20, sessions: 1_000, idle: 100_000}
	pattern := flag.String("run", "", "measure only lines that match this `regexp`")
	flag.IntVar(&o.rounds, "rounds", 3, "alternating rounds; every value is their median")
	flag.IntVar(&o.turns, "n", 100_000, "turns in the backlog, 100 a session")
	flag.IntVar(&o.large, "rss-turns", 1_000_000, "turns for rss_mb, 100 a session")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of the drain of pipeline_over_floor in each round to `file`.0, .1, …")
	flag.Parse()
	if o.run, err = regexp.Compile(*pattern); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return measure(ctx, o, os.Stdout)
}

// measure runs what is wanted. What looks at the heap comes first, as the server
// shares it.
func measure(ctx context.Context, o options, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "compactd-bench-")
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(dir)) }()
	f, err := newFleet(o.turns)
	if err != nil {
		return err
	}
	p := printer{out}
	p.header()
	for _, step := range []struct {
		lines []string
		run   func() error
	}{
		{[]string{lineEntry}, func() error { return measureEntries(f, o, p) }},
		{[]string{lineIdle}, func() error { return measureIdle(f, o, p) }},
		{[]string{lineTurn}, func() error { return measureTurn(f, o, p) }},
		{[]string{lineMeasure}, func() error { return measureMeasure(f, o, p) }},
		{[]string{linePlan}, func() error { return measurePlan(f, o, p) }},
		{[]string{lineRender}, func() error { return measureRender(o, p) }},
		{[]string{linePipeline, lineFull, lineRebuild}, func() error { return measureDrains(ctx, f, o, dir, p) }},
		{[]string{lineRestart}, func() error { return measureRestart(ctx, o, dir, p) }},
		{[]string{lineScaling}, func() error { return measureScaling(ctx, f, o, dir, p) }},
		{[]string{lineP50, lineP99}, func() error { return measureLatency(ctx, o, dir, p) }},
	} {
		if !o.want(step.lines...) {
			continue
		}
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.lines[0], err)
		}
	}
	if o.named(lineRSS) {
		if err := measureRSS(ctx, o, dir, p); err != nil {
			return fmt.Errorf("%s: %w", lineRSS, err)
		}
	}
	return nil
}
