package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"compactd/internal/testkit/freeport"
	"compactd/tools/harness"
)

// idlePartitions are the numbers of partitions whose costs are compared, the first with each other.
var idlePartitions = []int{8, 64, 256}

// idleWorker is a worker with an embedded server, and what it uses while nothing comes.
type idleWorker struct {
	*process
	partitions int
	nats, http string
	ready      time.Duration // since its start
	percent    []float64     // of one core, by round
}

// measurePartitions lets workers with few and with many partitions do nothing side by side, so that they share the
// machine.
func measurePartitions(ctx context.Context, o options, dir string, p printer) error {
	bin, err := buildWorker(ctx, dir)
	if err != nil {
		return err
	}
	var workers []*idleWorker
	for _, n := range idlePartitions {
		w, err := startIdle(ctx, bin, filepath.Join(dir, fmt.Sprint("partitions-", n)), n)
		if err != nil {
			return err
		}
		defer w.kill()
		workers = append(workers, w)
	}
	span := time.Duration(max(o.seconds, 1)) * time.Second
	for range o.rounds + 1 { // the first one has the work of the start
		before := make([]time.Duration, len(workers))
		for i, w := range workers {
			before[i] = cpuTimeOf(w.pid())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(span):
		}
		for i, w := range workers {
			w.percent = append(w.percent, 100*(cpuTimeOf(w.pid())-before[i]).Seconds()/span.Seconds())
		}
	}
	for _, w := range workers {
		if err := w.report(ctx, bin, p, workers[0].percent[1:]); err != nil {
			return err
		}
	}
	return nil
}

// startIdle starts a worker with so many partitions, and waits until it serves them.
func startIdle(ctx context.Context, bin, data string, n int) (w *idleWorker, err error) {
	w = &idleWorker{partitions: n}
	for _, address := range []*string{&w.nats, &w.http} {
		if *address, err = freeport.Address(); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	w.process, err = startWorker(ctx, bin, "GOMEMLIMIT=off", "--data", data, "--partitions", strconv.Itoa(n), "--listen", w.nats, "--http", w.http, "--log-format", "json")
	if err != nil {
		return nil, err
	}
	for {
		select {
		case <-w.ended:
			return nil, w.err()
		case <-time.After(10 * time.Millisecond):
		}
		if answer, err := http.Get("http://" + w.http + "/readyz"); err == nil { //nolint:noctx // of the own machine
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				w.ready = time.Since(began)
				return w, nil
			}
		}
	}
}

// report writes what a worker used, and over the one with the fewest partitions.
func (w *idleWorker) report(ctx context.Context, bin string, p printer, least []float64) error {
	name := fmt.Sprintf("partitions_%d_", w.partitions)
	anon, err := memoryOf(w.pid(), "RssAnon")
	if err != nil {
		return err
	}
	goroutines, err := w.metric("go_goroutines")
	if err != nil {
		return err
	}
	took, err := timed(func() error {
		out, err := exec.CommandContext(ctx, bin, "partitions", "list", "--json", "--nats", "nats://"+w.nats).CombinedOutput()
		if err != nil {
			return fmt.Errorf("list partitions: %w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.line(name+"ready_s", w.ready.Seconds(), "s")
	p.line(name+"cpu_percent", harness.Median(w.percent[1:]), "percent")
	p.line(name+"cpu_over_8", ratio(w.percent[1:], least), "ratio")
	p.line(name+"anon_mb", float64(anon)/(1<<20), "MB")
	p.line(name+"goroutines", goroutines, "goroutines")
	p.line(name+"list_ms", float64(took.Microseconds())/1e3, "ms")
	return nil
}

// metric reads a metric without labels.
func (w *idleWorker) metric(name string) (float64, error) {
	answer, err := http.Get("http://" + w.http + "/metrics") //nolint:noctx // of the own machine
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	for s := bufio.NewScanner(answer.Body); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}
