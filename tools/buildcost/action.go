package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"compactd/internal/events/codec"
)

// action is one step of go build, as -debug-actiongraph writes it: cmd/go/internal/work,
// type actionJSON, of Go 1.26. Times are nanoseconds of the processes it started.
type action struct {
	Mode    string
	Package string
	CmdUser int64
	CmdSys  int64
}

func (a action) cpu() time.Duration { return time.Duration(a.CmdUser + a.CmdSys) }

func readActions(path string) ([]action, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read action graph: %w", err)
	}
	var all []action
	if err := codec.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("read action graph: %w", err)
	}
	return all, nil
}

// std is the module of packages that have none.
const std = "std"

// modulesOf returns the packages that a program is made of and the module of each. It
// downloads what is missing, so that a build after it measures no network.
func modulesOf(ctx context.Context, target string) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", target)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages of %s: %w", target, err)
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(out)) {
		pkg, module, _ := strings.Cut(strings.TrimSpace(line), " ")
		modules[pkg] = cmp.Or(module, std)
	}
	return modules, nil
}

func countModules(modules map[string]string) int {
	distinct := map[string]bool{}
	for _, m := range modules {
		distinct[m] = true
	}
	return len(distinct)
}

// printDearest lists where the CPU time went, by package and by module. The link of
// the program is a line of its own.
func (c *cost) printDearest(w io.Writer, n int) {
	packages, modules := map[string]time.Duration{}, map[string]time.Duration{}
	for _, a := range c.actions {
		pkg, module := a.Package, c.modules[a.Package]
		if strings.HasPrefix(a.Mode, "link") {
			pkg, module = "(link)", "(link)"
		}
		packages[pkg] += a.cpu()
		modules[cmp.Or(module, std)] += a.cpu()
	}
	fmt.Fprintln(w, "dearest packages, in CPU-s")
	printLargest(w, packages, n)
	fmt.Fprintln(w, "dearest modules, in CPU-s")
	printLargest(w, modules, n)
}

func printLargest(w io.Writer, costs map[string]time.Duration, n int) {
	names := slices.SortedFunc(maps.Keys(costs), func(a, b string) int {
		return cmp.Or(cmp.Compare(costs[b], costs[a]), strings.Compare(a, b))
	})
	for _, name := range names[:min(n, len(names))] {
		fmt.Fprintf(w, "%8.1f  %s\n", costs[name].Seconds(), name)
	}
}
