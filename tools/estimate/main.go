// Command estimate measures how well estimators know what a prompt costs, on
// recorded sessions whose provider counted their prompts:
//
//	go run ./tools/estimate                  # of the directories that COMPACTD_SESSIONS lists
//	go run ./tools/estimate a.jsonl.gz b.jsonl.gz
//	go run ./tools/estimate -only ours       # one estimator
//
// Each estimator is a profile of the ledger, so what is measured is what decides.
// A session is cut where the recorded agent compacted, or where the provider's count fell: what
// follows is a stretch of its own. Before each call the estimate is compared with what the
// provider counted for its prompt: input, cache creation and cache read. The estimator
// has a usage of 1, 20 or 60 calls before, or none at all; then the first call's
// count stands for the parts that no transcript holds, the system prompt and tools.
//
// Columns are mean, 95th percentile and worst underestimate, in percent of what
// the provider counted for the prompt; net, of what it counted less those parts.
// At the trigger are calls at or above the default one, right after a usage. The rows of
// harnesses and repositories have their sessions alone; those without a repository have all
// others.
package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"compactd/internal/ops/transcript"
)

func main() {
	if err := command(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "estimate:", err)
		fmt.Fprintln(os.Stderr, "hint: name transcripts, or set COMPACTD_SESSIONS to directories of them")
		os.Exit(1)
	}
}

func command(out io.Writer) error {
	only := flag.String("only", "", "the one `estimator` to measure; all if empty")
	flag.Parse()
	paths := flag.Args()
	if len(paths) == 0 {
		paths = filepath.SplitList(os.Getenv("COMPACTD_SESSIONS"))
	}
	if len(paths) == 0 {
		return fmt.Errorf("no transcripts: COMPACTD_SESSIONS is not set")
	}
	all, err := read(out, paths)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no session of %v has a usage", paths)
	}
	by := slices.DeleteFunc(estimators(), func(e estimator) bool { return *only != "" && e.name != *only })
	if len(by) == 0 {
		return fmt.Errorf("there is no estimator %s", *only)
	}
	return report(out, all, by)
}

// read returns the stretches of all sessions. Each unusable session is a line.
func read(out io.Writer, paths []string) (all []stretch, err error) {
	source, err := transcript.Open(transcript.Auto, paths...)
	if err != nil {
		return nil, err
	}
	source.Thinking = true
	sessions, known := 0, map[string]bool{}
	for s := range source.Sessions(func(err error) { fmt.Fprintf(out, "left out: %v\n", err) }) {
		sessions++
		of := stretches(s)
		if len(of) == 0 {
			fmt.Fprintf(out, "left out: %s: no usage\n", s.Name)
			continue
		}
		if known[of[0].counts()] {
			fmt.Fprintf(out, "left out: %s: was read before in another form\n", s.Name)
			continue
		}
		known[of[0].counts()] = true
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

// report prints a table of estimators, and those of ours.
func report(out io.Writer, all []stretch, by []estimator) error {
	var total, ours table
	for _, e := range by {
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
	if ours != nil {
		if err := reportOurs(out, all, ours); err != nil {
			return err
		}
	}
	fmt.Fprint(out, "\nright after a compaction that halves the input by one stage (compactions)\n\n")
	return reportStages(out, all, by)
}

// reportOurs prints the errors of our estimator by harness, by repository, without each
// repository, and by stretch.
func reportOurs(out io.Writer, all []stretch, ours table) error {
	for i, name := range [...]string{"harness", "repository"} {
		of := func(s *stretch) string { return s.groups[i] }
		fmt.Fprintf(out, "\n%s, by %s\n\n", oursName, name)
		if err := ours.group(all, of, false).print(out, name); err != nil {
			return err
		}
		fmt.Fprintf(out, "\nsystem prompt and tools that no transcript has, of the first count, by %s\n\n", name)
		if err := reportFixed(out, all, of); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n%s, without a repository\n\n", oursName)
	if err := ours.group(all, func(s *stretch) string { return s.groups[1] }, true).print(out, "without"); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s, by stretch (calls)\n\n", oursName)
	return ours.print(out, "stretch")
}

// group adds up the rows of each group of stretches, or those of all others.
func (t table) group(all []stretch, of func(*stretch) string, others bool) (out table) {
	for _, name := range groups(all, of) {
		var sum errors
		for i := range all {
			if (of(&all[i]) == name) != others {
				sum.add(t[i].errors)
			}
		}
		out = append(out, row{name, sum})
	}
	return out
}

// groups are the names of the groups, sorted.
func groups(all []stretch, of func(*stretch) string) []string {
	names := map[string]bool{}
	for i := range all {
		names[of(&all[i])] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// reportFixed prints the count of the first prompts less our estimate of their messages.
func reportFixed(out io.Writer, all []stretch, of func(*stretch) string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, name := range groups(all, of) {
		var least, most, n int64
		for i := range all {
			s := &all[i]
			if of(s) != name || s.opening == nil {
				continue
			}
			fixed, err := s.fixed()
			if err != nil {
				return err
			}
			if n++; n == 1 || fixed < least {
				least = fixed
			}
			most = max(most, fixed)
		}
		if n > 0 {
			fmt.Fprintf(w, "%s\t%d to %d tokens, in %d sessions\t\n", name, least, most, n)
		}
	}
	return w.Flush()
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
