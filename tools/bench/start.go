package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"compactd/internal/compaction"
	"compactd/tools/harness"
)

// measureRestart measures starts of a worker with many sessions: from its files, from
// snapshots, and from the log alone.
func measureRestart(ctx context.Context, o options, dir string, p printer) error {
	f, err := newFleet(o.idle * turnsPerSession)
	if err != nil {
		return err
	}
	e, err := openEnvironment(ctx, filepath.Join(dir, "restart"))
	if err != nil {
		return err
	}
	defer e.Close()
	if _, err := e.publish(ctx, f, o.idle); err != nil { // the first turn of every session
		return fmt.Errorf("publish: %w", err)
	}
	c, err := f.lean()
	if err != nil {
		return err
	}
	ledgers := filepath.Join(dir, "restarted")
	if _, err := e.drain(ctx, c, o.idle, ledgers, ""); err != nil {
		return err
	}
	var files, floors, snapshots, logs []float64
	for range o.rounds {
		floor, err := readFiles(ledgers)
		if err != nil {
			return err
		}
		own, err := e.start(ctx, c, ledgers, 0)
		if err != nil {
			return fmt.Errorf("restart: %w", err)
		}
		other, err := e.startElsewhere(ctx, c, filepath.Join(dir, "restarted-elsewhere"))
		if err != nil {
			return fmt.Errorf("restart from snapshots: %w", err)
		}
		log, err := e.start(ctx, c, "", o.idle)
		if err != nil {
			return fmt.Errorf("restart from the log: %w", err)
		}
		files, floors = append(files, own.Seconds()), append(floors, floor.Seconds())
		snapshots, logs = append(snapshots, other.Seconds()), append(logs, log.Seconds())
	}
	p.line(lineRestart, harness.Median(files), "s")
	p.line("restart_over_floor", ratio(files, floors), "ratio")
	p.line("restart_snapshot_s", harness.Median(snapshots), "s")
	p.line("restart_log_s", harness.Median(logs), "s")
	return nil
}

// readFiles reads all files of a directory once, and does nothing with them.
func readFiles(dir string) (time.Duration, error) {
	began := time.Now()
	found, err := filepath.Glob(filepath.Join(dir, "p*.db"))
	for _, path := range found {
		f, oerr := os.Open(path)
		if oerr != nil {
			return 0, oerr
		}
		_, cerr := io.Copy(io.Discard, struct{ io.Reader }{f}) // without the shortcuts of *os.File
		err = errors.Join(err, cerr, f.Close())
	}
	return time.Since(began), err
}

// startElsewhere starts a worker on an empty directory: it has the snapshots.
func (e environment) startElsewhere(ctx context.Context, c *compaction.Config, dir string) (time.Duration, error) {
	if err := os.RemoveAll(dir); err != nil {
		return 0, err
	}
	return e.start(ctx, c, dir, 0)
}

// start starts a worker on a drained server, and returns how long it took to be ready. It must
// replay as many events as replays, and decide none.
func (e environment) start(ctx context.Context, c *compaction.Config, ledgers string, replays int) (took time.Duration, err error) {
	runtime.GC()
	seen := newWatch(1)
	began := time.Now()
	s, err := e.serve(ctx, c, ledgers, seen.listener())
	if err != nil {
		return 0, err
	}
	err = s.Await(ctx, s.Ready())
	took = time.Since(began)
	if again := seen.applied.Load(); err == nil && again > 0 {
		err = fmt.Errorf("%d turns had to be decided again", again)
	}
	if n := seen.replayed.Load(); err == nil && n != int64(replays) {
		err = fmt.Errorf("%d events were read again, not %d", n, replays)
	}
	return took, errors.Join(err, s.Stop())
}
