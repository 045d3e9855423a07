package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	memoryLimit = 256 << 20 // of the worker process, as GOMEMLIMIT
	largeResult = 900 << 10 // bytes of a result
	largeEvery  = 5_000     // turns
	rssWindow   = 24_000    // tokens, so that every session is compacted
)

// measureRSS lets a worker process work off a long log of many sessions, and looks
// at its memory from outside.
func measureRSS(ctx context.Context, o options, dir string, p printer) (err error) {
	bin, err := buildWorker(ctx, dir)
	if err != nil {
		return err
	}
	f, err := newFleet(o.large)
	if err != nil {
		return err
	}
	e, err := openEnvironment(ctx, filepath.Join(dir, "rss"))
	if err != nil {
		return err
	}
	defer e.Close()
	n := f.sessions * turnsPerSession
	if err := e.publishLarge(ctx, f, n); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	began := time.Now()
	worker, err := e.startProcess(ctx, bin, filepath.Join(dir, "rss-ledgers"), fmt.Sprintf("GOMEMLIMIT=%d", memoryLimit), fmt.Sprintf("--set=window_tokens=%d", rssWindow))
	if err != nil {
		return err
	}
	anon, err := watchMemory(ctx, worker, e.Decided)
	took := time.Since(began)
	peak, perr := memoryOf(worker.pid(), "VmHWM")
	worker.kill() // summaries keep it busy, and are not what is measured
	if err = errors.Join(err, perr); err != nil {
		return err
	}
	p.line(lineRSS, float64(peak)/1e6, "mb")
	p.line("rss_over_limit", float64(peak)/memoryLimit, "ratio")
	p.line("rss_anon_mb", float64(anon)/1e6, "mb")
	p.line("rss_turns", float64(n), "count")
	p.line("rss_turns_per_s", float64(n)/took.Seconds(), "turns/s")
	return nil
}

// publishLarge is publish with a large result now and then.
func (e environment) publishLarge(ctx context.Context, f *fleet, n int) error {
	result := prose(rand.New(rand.NewPCG(3, 4)), largeResult)
	_, err := send(ctx, e.JS, n, func(i int) *nats.Msg {
		if i%largeEvery == largeEvery-1 {
			return f.largeMessage(i, result)
		}
		return f.message(i)
	})
	return err
}

// largeMessage is turn i of all, with the result of a tool that was not bounded.
func (f *fleet) largeMessage(i int, result string) *nats.Msg {
	m := f.message(i)
	at := bytes.LastIndex(m.Data, []byte(`"content":"`)) + len(`"content":`)
	end := bytes.LastIndex(m.Data, []byte(`}]}],"usage"`))
	m.Data = bytes.Join([][]byte{m.Data[:at], []byte(result), m.Data[end:]}, nil)
	return m
}

// watchMemory looks at a process until done returns, and gives back the most memory
// that it had beside mapped files, in bytes.
func watchMemory(ctx context.Context, worker *process, done func(context.Context) error) (most int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	there := make(chan error, 1)
	go func() { there <- done(ctx) }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-there:
			return most, err
		case <-worker.ended:
			return most, worker.err()
		case <-tick.C:
			if now, err := memoryOf(worker.pid(), "RssAnon"); err == nil {
				most = max(most, now)
			}
		}
	}
}

// memoryOf reads a line of /proc/<pid>/status, in bytes.
func memoryOf(pid int, line string) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(l, ":")
		if name != line {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		return kb << 10, err
	}
	return 0, fmt.Errorf("no %s of process %d: this line needs Linux", line, pid)
}
