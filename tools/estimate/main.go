// Command estimate measures how well estimators know what a prompt costs, on
// recorded sessions whose provider counted their prompts:
//
//	go run ./tools/estimate                  # of the directory that COMPACTD_SESSIONS names
//	go run ./tools/estimate a.jsonl.gz b.jsonl.gz
//
// Each estimator is a profile of the ledger, so what is measured is what decides.
// A session is cut where the recorded agent compacted: what follows is a stretch
// of its own. Before each call the estimate is compared with what the provider
// counted for its prompt: input, cache creation and cache read. The estimator
// has a usage of 1, 20 or 60 calls before, or none at all; then the first call's
// count stands for the parts that no transcript holds, the system prompt and tools.
//
// Columns are mean, 95th percentile and worst underestimate, in percent of what
// the provider counted for the prompt; net, of what it counted less those parts.
// At the trigger are calls at or above the default one, right after a usage.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"compactd/internal/ops/transcript"
)

func main() {
	if err := command(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "estimate:", err)
		fmt.Fprintln(os.Stderr, "hint: name transcripts, or set COMPACTD_SESSIONS to a directory of them")
		os.Exit(1)
	}
}

func command(out io.Writer) error {
	flag.Parse()
	paths := flag.Args()
	if len(paths) == 0 {
		dir := os.Getenv("COMPACTD_SESSIONS")
		if dir == "" {
			return fmt.Errorf("no transcripts: COMPACTD_SESSIONS is not set")
		}
		paths = []string{dir}
	}
	all, err := read(out, paths)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no session of %v has a usage", paths)
	}
	return report(out, all)
}

// read returns the stretches of all sessions. What cannot be used is a line.
func read(out io.Writer, paths []string) (all []stretch, err error) {
	source, err := transcript.Open(transcript.Auto, paths...)
	if err != nil {
		return nil, err
	}
	source.Thinking = true
	sessions := 0
	for s := range source.Sessions(func(err error) { fmt.Fprintf(out, "left out: %v\n", err) }) {
		sessions++
		of := stretches(s)
		if len(of) == 0 {
			fmt.Fprintf(out, "left out: %s: no usage\n", s.Name)
		}
		for _, x := range of {
			if _, err := estimators()[0].measure(x); err != nil {
				fmt.Fprintf(out, "left out: %s: %v\n", x.name, err)
				continue
			}
			all = append(all, x)
		}
	}
	fmt.Fprintf(out, "%d sessions, %d files that are no transcripts\n", sessions, source.Unknown)
	return all, nil
}

// report prints a table of all estimators, and one of ours by stretch.
func report(out io.Writer, all []stretch) error {
	var total table
	var ours []row
	for _, e := range estimators() {
		var sum errors
		for _, s := range all {
			errs, err := e.measure(s)
			if err != nil {
				return fmt.Errorf("measure %s by %s: %w", s.name, e.name, err)
			}
			sum.add(errs)
			if e.name == oursName {
				ours = append(ours, row{fmt.Sprintf("%s (%d)", s.name, len(s.calls)), errs})
			}
		}
		total = append(total, row{e.name, sum})
	}
	fmt.Fprintf(out, "%d stretches; mean / p95 / worst underestimate, in %% of what the provider counted\n\n", len(all))
	if err := total.print(out, "estimator"); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s, by stretch (calls)\n\n", oursName)
	if err := table(ours).print(out, "stretch"); err != nil {
		return err
	}
	fmt.Fprint(out, "\nright after a compaction that halves the input by one stage (compactions)\n\n")
	return reportStages(out, all)
}

// row is a line of a table.
type row struct {
	name string
	errors
}

type table []row

func (t table) print(out io.Writer, first string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t1 call after\t20 calls after\t60 calls after\tno usage\tno usage, net\tat the trigger\t\n", first)
	for _, r := range t {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.name, r.after[0], r.after[1], r.after[2], r.never, r.net, r.trigger)
	}
	return w.Flush()
}
