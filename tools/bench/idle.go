package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"compactd/tools/harness"
)

// measureRest lets a worker process work off a few turns, and then do nothing.
func measureRest(ctx context.Context, f *fleet, o options, dir string, p printer) error {
	bin, err := buildWorker(ctx, dir)
	if err != nil {
		return err
	}
	e, err := openEnvironment(ctx, filepath.Join(dir, "rest"))
	if err != nil {
		return err
	}
	defer e.Close()
	if _, err := e.publish(ctx, f, min(f.sessions, 100)); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	worker, err := e.startProcess(ctx, bin, filepath.Join(dir, "rest-ledgers"), "GOMEMLIMIT=off")
	if err != nil {
		return err
	}
	defer worker.kill()
	if _, err := watchMemory(ctx, worker, e.Decided); err != nil {
		return err
	}
	var own, servers []float64
	span := time.Duration(max(o.seconds, 1)) * time.Second
	for range o.rounds + 1 { // the first one has the work of the start
		began, server := cpuTimeOf(worker.pid()), cpuTime()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-worker.ended:
			return worker.err()
		case <-time.After(span):
		}
		percent := func(d time.Duration) float64 { return 100 * d.Seconds() / span.Seconds() }
		own, servers = append(own, percent(cpuTimeOf(worker.pid())-began)), append(servers, percent(cpuTime()-server))
	}
	p.line(lineRest, harness.Median(own[1:]), "percent")
	p.line("idle_server_cpu_percent", harness.Median(servers[1:]), "percent")
	return nil
}

// cpuTimeOf is what another process has used of all cores; see clock_getcpuclockid(3).
func cpuTimeOf(pid int) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid)<<3|2, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
