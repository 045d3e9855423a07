package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/tools/harness"
)

// pace is how fast a log was read.
type pace struct {
	rate float64 // turns/s
	cpu  float64 // microseconds of all cores a turn, the server's included
}

// paceOf is the pace of n turns since a moment, and since what the CPU clock showed then.
func paceOf(n int, began time.Time, cpu time.Duration) pace {
	return pace{float64(n) / time.Since(began).Seconds(), float64((cpuTime() - cpu).Nanoseconds()) / 1e3 / float64(n)}
}

// drained is one drain of the backlog.
type drained struct {
	pace
	ratio float64 // over the floor of the same round
	seen  *watch
}

// measureDrains measures everything that reads one log: floor, pipeline, rebuild
// and the pipeline with whole histories, one after the other in every round.
func measureDrains(ctx context.Context, f *fleet, o options, dir string, p printer) error {
	n := f.sessions * turnsPerSession
	e, err := openEnvironment(ctx, filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer e.Close()
	in, err := e.publish(ctx, f, n)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	lean, err := f.lean()
	if err != nil {
		return err
	}
	full, err := f.full()
	if err != nil {
		return err
	}
	var floors, reads []pace
	var rebuilds, restored []float64
	var pipelines, fulls []drained
	for round := range o.rounds {
		floor, err := e.floor(ctx, n, decodeTurn)
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		read, err := e.floor(ctx, n, readTurn)
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		floors, reads = append(floors, floor), append(reads, read)
		drain := func(c *compaction.Config, profile string) (drained, error) {
			d, err := e.drain(ctx, c, n, filepath.Join(dir, "ledgers"), profile)
			d.ratio = d.rate / floor.rate
			return d, err
		}
		if o.want(linePipeline, lineRebuild) {
			profile := ""
			if o.profile != "" {
				profile = fmt.Sprintf("%s.%d", o.profile, round)
			}
			d, err := drain(lean, profile)
			if err != nil {
				return err
			}
			pipelines = append(pipelines, d)
		}
		if o.want(lineRebuild) {
			began, err := e.start(ctx, lean, "", n)
			if err != nil {
				return fmt.Errorf("rebuild: %w", err)
			}
			rebuilds = append(rebuilds, float64(n)/began.Seconds())
			if began, err = e.startElsewhere(ctx, lean, filepath.Join(dir, "elsewhere")); err != nil {
				return fmt.Errorf("rebuild from snapshots: %w", err)
			}
			restored = append(restored, float64(n)/began.Seconds())
		}
		if o.want(lineFull) {
			profile := ""
			if o.profile != "" {
				profile = fmt.Sprintf("%s.full.%d", o.profile, round)
			}
			d, err := drain(full, profile)
			if err != nil {
				return err
			}
			fulls = append(fulls, d)
		}
	}
	rate, cpu := func(x pace) float64 { return x.rate }, func(x pace) float64 { return x.cpu }
	p.line("floor_turns_per_s", column(floors, rate), "turns/s")
	p.line("floor_cpu_us", column(floors, cpu), "us")
	p.line("floor_read_turns_per_s", column(reads, rate), "turns/s")
	p.drains("pipeline", pipelines, in)
	p.drains("pipeline_full", fulls, in)
	if len(rebuilds) > 0 {
		p.line(lineRebuild, harness.Median(rebuilds), "turns/s")
		p.line("rebuild_snapshot_turns_per_s", harness.Median(restored), "turns/s")
		p.line("rebuild_snapshot_over_log", ratio(restored, rebuilds), "ratio")
	}
	return nil
}

// drains writes the lines of one kind of drain.
func (p printer) drains(name string, ds []drained, in int64) {
	if len(ds) == 0 {
		return
	}
	p.line(name+"_over_floor", column(ds, func(d drained) float64 { return d.ratio }), "ratio")
	p.line(name+"_turns_per_s", column(ds, func(d drained) float64 { return d.rate }), "turns/s")
	p.line(name+"_cpu_us", column(ds, func(d drained) float64 { return d.cpu }), "us")
	p.line(name+"_bytes_in", float64(in), "bytes")
	count := func(line, unit string, of func(*watch) *atomic.Int64) {
		p.line(name+line, column(ds, func(d drained) float64 { return float64(of(d.seen).Load()) }), unit)
	}
	count("_bytes_out", "bytes", func(w *watch) *atomic.Int64 { return &w.bytes })
	count("_outcomes", "count", func(w *watch) *atomic.Int64 { return &w.emitted })
	count("_commits", "count", func(w *watch) *atomic.Int64 { return &w.commits })
	count("_checkpoints", "count", func(w *watch) *atomic.Int64 { return &w.checkpoints })
}

// decodeTurn is what the floor does with a turn.
func decodeTurn(data []byte) error {
	_, err := events.DecodeTurn(data)
	return err
}

// readTurn also reads the messages, block by block, as a worker must.
func readTurn(data []byte) error {
	t, err := events.DecodeTurn(data)
	if err == nil {
		_, err = t.Format.ReadAll(t.Messages)
	}
	return err
}

// floor reads the log as a worker does, decodes, and does nothing else.
func (e environment) floor(ctx context.Context, n int, decode func([]byte) error) (at pace, err error) {
	nc, err := e.Connect(ctx)
	if err != nil {
		return at, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return at, err
	}
	var read atomic.Int64
	done, failed := make(chan struct{}), make(chan error, 1)
	receive := func(m jetstream.Msg) {
		if err := decode(m.Data()); err != nil {
			select {
			case failed <- err:
			default:
			}
		}
		if read.Add(1) == int64(n) {
			close(done)
		}
	}
	runtime.GC()
	began, cpu := time.Now(), cpuTime()
	var stops []func()
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for p := range harness.Partitions {
		stop, err := stream.ConsumeLog(ctx, js, stream.LogFrom{Partitions: []int{p}}, receive)
		if err != nil {
			return at, err
		}
		stops = append(stops, stop)
	}
	select {
	case <-done:
		return paceOf(n, began, cpu), nil
	case err := <-failed:
		return at, err
	case <-time.After(2 * time.Minute):
		return at, harness.ErrSlow
	case <-ctx.Done():
		return at, ctx.Err()
	}
}

// drain lets a new worker work off the whole log.
func (e environment) drain(ctx context.Context, c *compaction.Config, n int, ledgers, profile string) (d drained, err error) {
	if err := errors.Join(e.reset(ctx), os.RemoveAll(ledgers)); err != nil {
		return d, err
	}
	runtime.GC()
	stopProfile, err := startProfile(profile)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	d.seen = newWatch(n)
	began, cpu := time.Now(), cpuTime()
	s, err := e.serve(ctx, c, ledgers, d.seen.listener())
	if err != nil {
		return d, err
	}
	err = s.Await(ctx, d.seen.done)
	d.pace = paceOf(n, began, cpu)
	return d, errors.Join(err, stopProfile(), s.Stop())
}

// startProfile writes a CPU profile until the func it returns is called.
func startProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return sync.OnceValue(func() error { pprof.StopCPUProfile(); return f.Close() }), nil
}
