package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

// commit is the state of the repository that the agents find. It is a constant:
// an example that follows the code would change with every commit.
const commit = "49ef94c114ced13c60662755f31ef86817e88b36"

// scenario is one session to be made.
type scenario struct {
	name     string
	window   int // context window in tokens; 0 leaves it to the reader
	overhead int // tokens of system prompt and tool schemas, which a transcript does not hold
	start    time.Time
	play     func(*agent)
}

// scenarios in the order of their files.
var scenarios = []scenario{
	{"example-anthropic-dialect", 0, 14_208, time.Date(2026, 5, 12, 8, 40, 3, 0, time.UTC), anthropicDialect},
	{"example-commit-review", 0, 14_208, time.Date(2026, 5, 19, 13, 5, 41, 0, time.UTC), commitReview},
	{"example-estimator-profile", 0, 14_208, time.Date(2026, 5, 6, 9, 12, 27, 0, time.UTC), estimatorProfile},
	{"example-fix-validator", 16_000, 310, time.Date(2026, 5, 4, 15, 31, 9, 0, time.UTC), fixValidator},
	{"example-rename-flag", 16_000, 310, time.Date(2026, 5, 5, 10, 2, 55, 0, time.UTC), renameFlag},
}

func main() { os.Exit(run()) }

func run() int {
	out := flag.String("out", "examples/sessions", "folder to write to")
	repo := flag.String("repo", ".", "folder within the repository")
	only := flag.String("session", "", "make only the session of this name")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := generate(ctx, *repo, *out, *only); err != nil {
		fmt.Fprintf(os.Stderr, "generate: %v\n", err)
		if errors.Is(err, errNoHistory) {
			fmt.Fprintln(os.Stderr, "hint: git fetch --unshallow")
		}
		return 1
	}
	return 0
}

func generate(ctx context.Context, repo, out, only string) error {
	if only != "" && !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == only }) {
		return fmt.Errorf("no session is named %q", only)
	}
	for _, s := range scenarios {
		if only != "" && s.name != only {
			continue
		}
		lines, err := record(ctx, repo, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		data, err := encode(lines)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		file := filepath.Join(out, s.name+".jsonl.gz")
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %d messages, %d bytes\n", file, len(lines), len(data))
	}
	return nil
}

// record plays a scenario in a copy of the repository of its own.
func record(ctx context.Context, repo string, s scenario) ([]line, error) {
	box, err := newSandbox(ctx, repo)
	if err != nil {
		return nil, err
	}
	defer box.remove()
	return perform(s, box)
}
