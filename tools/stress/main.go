// Command stress runs the tests on a busy machine: `make test` several times beside
// processes that keep every core busy, in shuffled order and uncached, then each of the
// slowest tests many times under the same load, several tests at once, without the race
// detector. It finds tests whose outcome depends on the speed of the machine.
//
//	go run ./tools/stress                            # what `make stress` runs
//	go run ./tools/stress -runs 0 -tests TestKill    # only these tests, many times
//
// It prints a line for each run and for each repeated test, the output of what failed, and
// last the line
//
//	stress runs=3 failed_runs=0 repeated=20 times=50 failed_tests=0 busy=4
//
// Its exit status is 1 if a test failed.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// busyArgument makes the program one of the busy processes.
const busyArgument = "busy"

func main() {
	if len(os.Args) == 2 && os.Args[1] == busyArgument {
		busy()
		return
	}
	var s stress
	flag.IntVar(&s.busy, "busy", 4, "busy `processes` beside the tests")
	flag.IntVar(&s.runs, "runs", 3, "runs of make test")
	flag.IntVar(&s.slowest, "slowest", 20, "how many of the slowest `tests` are repeated")
	flag.IntVar(&s.times, "times", 50, "how often each of them is repeated")
	flag.IntVar(&s.parallel, "parallel", 6, "how many of them are repeated at once")
	flag.Func("tests", "repeat these tests instead of the slowest, `names` joined by commas", func(v string) error {
		s.tests = strings.Split(v, ",")
		return nil
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := s.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// stress is one run of the command.
type stress struct {
	busy, runs, slowest, times, parallel int
	tests                                []string

	mu      sync.Mutex
	seconds map[test]float64 // of the slowest run of each test
}

// test is a top-level test of a package.
type test struct{ pkg, name string }

func (s *stress) run(ctx context.Context) (ok bool, err error) {
	for range s.busy {
		end, err := startBusy(ctx)
		if err != nil {
			return false, fmt.Errorf("start a busy process: %w", err)
		}
		defer end()
	}
	s.seconds = map[test]float64{}
	failedRuns := 0
	for i := range s.runs {
		began := time.Now()
		failed, err := s.goTest(ctx, exec.CommandContext(ctx, "make", "--no-print-directory", "test", "ARGS=-count=1 -shuffle=on -json -timeout=60m"))
		if err != nil {
			return false, err
		}
		fmt.Printf("run %d of %d: %.0f s, %s\n", i+1, s.runs, time.Since(began).Seconds(), verdict(failed))
		if len(failed) > 0 {
			failedRuns++
		}
	}
	repeated, err := s.chosen(ctx)
	if err != nil {
		return false, err
	}
	failedTests, err := s.repeat(ctx, repeated)
	if err != nil {
		return false, err
	}
	fmt.Printf("stress runs=%d failed_runs=%d repeated=%d times=%d failed_tests=%d busy=%d\n", s.runs, failedRuns, len(repeated), s.times, failedTests, s.busy)
	return failedRuns+failedTests == 0, nil
}

// repeat runs each of the tests many times, and returns how many of them failed.
func (s *stress) repeat(ctx context.Context, tests []test) (failedTests int, err error) {
	var failing atomic.Int32
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.parallel)
	for i, t := range tests {
		group.Go(func() error {
			began := time.Now()
			failed, err := s.goTest(ctx, exec.CommandContext(ctx, "go", "test", "-count="+strconv.Itoa(s.times), "-run=^"+t.name+"$", "-json", "-timeout=240m", t.pkg))
			if err != nil {
				return err
			}
			fmt.Printf("test %d of %d: %s %s, %d times: %.0f s, %s\n", i+1, len(tests), t.pkg, t.name, s.times, time.Since(began).Seconds(), verdict(failed))
			if len(failed) > 0 {
				failing.Add(1)
			}
			return nil
		})
	}
	err = group.Wait()
	return int(failing.Load()), err
}

func verdict(failed []string) string {
	if len(failed) == 0 {
		return "passed"
	}
	return "FAILED: " + strings.Join(failed, ", ")
}

// chosen returns the tests to repeat: the slowest first.
func (s *stress) chosen(ctx context.Context) ([]test, error) {
	if len(s.tests) > 0 {
		return find(ctx, s.tests)
	}
	all := slices.SortedFunc(maps.Keys(s.seconds), func(a, b test) int {
		return cmp.Or(cmp.Compare(s.seconds[b], s.seconds[a]), strings.Compare(a.name, b.name))
	})
	return all[:min(s.slowest, len(all))], nil
}

// find looks up the packages that have tests of these names.
func find(ctx context.Context, names []string) (out []test, err error) {
	text, err := exec.CommandContext(ctx, "go", "test", "-list", "^("+strings.Join(names, "|")+")$", "-json", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("list tests: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var e event
		if err := d.Decode(&e); err == io.EOF {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("list tests: %w", err)
		}
		if name := strings.TrimSpace(e.Output); slices.Contains(names, name) {
			out = append(out, test{e.Package, name})
		}
	}
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// goTest runs a command that prints what go test -json does, and returns what failed: tests,
// packages, or the command itself.
func (s *stress) goTest(ctx context.Context, cmd *exec.Cmd) (failed []string, err error) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run %s: %w", cmd, err)
	}
	failed, err = s.collect(out)
	ended := cmd.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if ended != nil && len(failed) == 0 {
		failed = append(failed, fmt.Sprintf("%s: %v", cmd, ended))
	}
	return failed, err
}

// collect reads what the tests report, keeps how long each took, and prints the output of
// those that fail.
func (s *stress) collect(r io.Reader) (failed []string, err error) {
	outputs := map[test]*strings.Builder{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return failed, nil
		}
		if err != nil {
			return failed, fmt.Errorf("read what the tests print: %w", err)
		}
		var e event
		if json.Unmarshal(line, &e) != nil || e.Action == "" {
			continue // a line of make itself
		}
		top, _, part := strings.Cut(e.Test, "/")
		t := test{e.Package, top}
		switch e.Action {
		case "output", "build-output":
			if outputs[t] == nil {
				outputs[t] = new(strings.Builder)
			}
			outputs[t].WriteString(e.Output)
		case "fail", "build-fail":
			if part {
				continue
			}
			name := strings.TrimSuffix(e.Package+" "+top, " ")
			failed = append(failed, name)
			if o := outputs[t]; o != nil {
				fmt.Printf("--- output of %s\n%s", name, o.String())
			}
			delete(outputs, t)
		case "pass":
			if !part && top != "" {
				s.mu.Lock()
				s.seconds[t] = max(s.seconds[t], e.Elapsed)
				s.mu.Unlock()
			}
			if !part {
				delete(outputs, t)
			}
		}
	}
}

// startBusy starts a process that keeps a core busy until end, or until this process is
// gone: then its standard input ends.
func startBusy(ctx context.Context) (end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, busyArgument)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = in.Close()
		_ = cmd.Wait()
	}, nil
}

// busy computes until its standard input ends.
func busy() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for sum := 0; ; sum++ {
		runtime.KeepAlive(sum)
	}
}
