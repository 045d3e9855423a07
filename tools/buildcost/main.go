package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// worker is the program under measurement, from the root of the module.
const worker = "./cmd/worker"

// floor is what the product cannot do without: the queue, its client and the state.
// See docs/adr/0011.
const floor = `package main

import (
	_ "github.com/nats-io/nats-server/v2/server"
	_ "github.com/nats-io/nats.go"
	_ "go.etcd.io/bbolt"
)

func main() {}
`

func main() {
	log.SetFlags(0)
	log.SetPrefix("build-cost: ")
	maxRatio := flag.Float64("max-ratio", 2.25, "fail when the worker costs more than this many times the floor")
	maxMB := flag.Float64("max-mb", 54, "fail when the worker's binary is larger, in 1,000,000 bytes")
	dearest := flag.Int("dearest", 10, "how many packages and modules to list")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ratio, mb, err := measure(ctx, *dearest)
	stop()
	if err != nil {
		log.Fatal(err)
	}
	tooMuch := ratio > *maxRatio || mb > *maxMB
	if tooMuch {
		fmt.Printf("FAILED: at most ratio=%.2f binary_mb=%.1f\n", *maxRatio, *maxMB)
	}
	fmt.Printf("build-cost ratio=%.2f binary_mb=%.1f\n", ratio, mb)
	if tooMuch {
		os.Exit(1)
	}
}

// measure builds both programs, prints what they cost, and returns the ratio of their
// CPU times and the size of the worker.
func measure(ctx context.Context, dearest int) (ratio, mb float64, err error) {
	dir, err := os.MkdirTemp("", "build-cost-")
	if err != nil {
		return 0, 0, fmt.Errorf("make temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source := filepath.Join(dir, "floor.go")
	if err := os.WriteFile(source, []byte(floor), 0o600); err != nil {
		return 0, 0, fmt.Errorf("write floor: %w", err)
	}
	base, err := build(ctx, dir, "floor", source)
	if err != nil {
		return 0, 0, err
	}
	base.print("nats-server, nats.go and bbolt only")
	product, err := build(ctx, dir, "worker", worker)
	if err != nil {
		return 0, 0, err
	}
	product.print(worker)
	product.printDearest(os.Stdout, dearest)
	return product.cpu.Seconds() / base.cpu.Seconds(), float64(product.size) / 1e6, nil
}

// cost is what one cold build took.
type cost struct {
	cpu, wall time.Duration
	size      int64 // of the binary, in bytes
	modules   map[string]string
	actions   []action
}

// build builds target into dir with a cache that only this build uses.
func build(ctx context.Context, dir, name, target string) (*cost, error) {
	modules, err := modulesOf(ctx, target)
	if err != nil {
		return nil, err
	}
	binary, graph := filepath.Join(dir, name), filepath.Join(dir, name+".json")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-debug-actiongraph", graph, "-o", binary, target)
	cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(dir, name+".cache"))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("build %s: %w", name, err)
	}
	c := &cost{wall: time.Since(began), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), modules: modules}
	info, err := os.Stat(binary)
	if err != nil {
		return nil, fmt.Errorf("size of %s: %w", name, err)
	}
	c.size = info.Size()
	c.actions, err = readActions(graph)
	return c, err
}

func (c *cost) print(name string) {
	fmt.Printf("%s: %.1f CPU-s, %.0f s, %.1f MB, %d packages of %d modules\n",
		name, c.cpu.Seconds(), c.wall.Seconds(), float64(c.size)/1e6, len(c.modules), countModules(c.modules))
}
