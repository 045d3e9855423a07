package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"compactd/tools/harness"
)

// measureScaling lets one, two and four worker processes work off the same log, and
// compares: from their start, with the server in this process.
func measureScaling(ctx context.Context, f *fleet, o options, dir string, p printer) error {
	bin, err := buildWorker(ctx, dir)
	if err != nil {
		return err
	}
	e, err := openEnvironment(ctx, filepath.Join(dir, "scaling"))
	if err != nil {
		return err
	}
	defer e.Close()
	n := f.sessions * turnsPerSession
	if _, err := e.publish(ctx, f, n); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	rates := map[int][]float64{}
	for round := range o.rounds {
		for _, workers := range []int{1, 2, 4} {
			at, err := e.drainTogether(ctx, bin, filepath.Join(dir, fmt.Sprintf("scaling-%d-%d", round, workers)), workers)
			if err != nil {
				return err
			}
			rates[workers] = append(rates[workers], float64(n)/at.took.Seconds())
		}
	}
	p.line("workers_1_turns_per_s", harness.Median(rates[1]), "turns/s")
	p.line(lineScaling, ratio(rates[2], rates[1]), "ratio")
	p.line("workers_4_over_1", ratio(rates[4], rates[1]), "ratio")
	return nil
}

// together is what it took workers in processes of their own to decide a log, from their
// start.
type together struct {
	took            time.Duration
	workers, server time.Duration // of all cores; that of the workers with their end
}

// drainTogether has so many new workers decide the whole log.
func (e environment) drainTogether(ctx context.Context, bin, dir string, workers int) (at together, err error) {
	if err := e.reset(ctx); err != nil {
		return at, err
	}
	alive, cancel := context.WithCancelCause(ctx) // while all workers live
	defer cancel(nil)
	var ps []*process
	defer func() {
		stopAll(ps)
		for _, p := range ps {
			at.workers += p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
		}
	}()
	began, cpu := time.Now(), cpuTime()
	for i := range workers {
		p, err := e.startProcess(ctx, bin, fmt.Sprintf("%s-%d", dir, i), "", "--snapshot-every=0")
		if err != nil {
			return at, err
		}
		ps = append(ps, p)
		go func() {
			<-p.ended
			cancel(p.err())
		}()
	}
	if err := e.Decided(alive); err != nil {
		return at, fmt.Errorf("%w: %w", err, context.Cause(alive))
	}
	return together{took: time.Since(began), server: cpuTime() - cpu}, nil
}
