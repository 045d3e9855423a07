package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/tools/harness"
)

// latencyRate is the turns/s that are published.
const latencyRate = 2_000

// measureLatency measures every round on a server, a log and ledgers of its own.
func measureLatency(ctx context.Context, o options, dir string, p printer) error {
	var p50, p99, outcomes []float64
	for range o.rounds {
		dir := filepath.Join(dir, "latency")
		ms, err := latencies(ctx, dir, max(o.seconds*latencyRate, turnsPerSession))
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			return err
		}
		p50, p99, outcomes = append(p50, harness.Median(ms)), append(p99, harness.Quantile(ms, 0.99)), append(outcomes, float64(len(ms)))
	}
	p.line(lineP50, harness.Median(p50), "ms")
	p.line(lineP99, harness.Median(p99), "ms")
	p.line("latency_2k_outcomes", harness.Median(outcomes), "count")
	return nil
}

// schedule states when turn i is due.
type schedule struct{ start time.Time }

func (s schedule) due(i int) time.Time {
	return s.start.Add(time.Duration(i) * time.Second / latencyRate)
}

// latencies publishes n turns on time and returns how many milliseconds each
// outcome took from then.
func latencies(ctx context.Context, dir string, n int) (ms []float64, err error) {
	f, err := newFleet(n)
	if err != nil {
		return nil, err
	}
	n = f.sessions * turnsPerSession
	c, err := f.lean()
	if err != nil {
		return nil, err
	}
	e, err := openEnvironment(ctx, filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer e.Close()
	seen := newWatch(n)
	s, err := e.serve(ctx, c, filepath.Join(dir, "ledgers"), seen.listener())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := s.Await(ctx, s.Ready()); err != nil {
		return nil, err
	}
	agents, err := e.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer agents.Close()
	received, err := subscribe(agents, n)
	if err != nil {
		return nil, err
	}
	on := schedule{time.Now().Add(100 * time.Millisecond)}
	if err := e.pace(ctx, f, n, on); err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	if err := s.Await(ctx, seen.done); err != nil {
		return nil, err
	}
	for range seen.emitted.Load() {
		select {
		case h := <-received:
			if h.err != nil {
				return nil, h.err
			}
			ms = append(ms, float64(h.at.Sub(on.due(h.turn)))/float64(time.Millisecond))
		case <-time.After(10 * time.Second):
			return nil, fmt.Errorf("received %d of %d outcomes", len(ms), seen.emitted.Load())
		}
	}
	return ms, nil
}

// arrival is an outcome as its agent receives it.
type arrival struct {
	turn int // of all, from 0
	at   time.Time
	err  error
}

// subscribe receives what is republished. The one publisher of a new log makes turn i
// its sequence i + 1.
func subscribe(nc *nats.Conn, n int) (<-chan arrival, error) {
	received := make(chan arrival, n)
	_, err := nc.Subscribe(events.Published(events.KindBudget, events.Address{Tenant: "*", Session: "*"}), func(m *nats.Msg) {
		at := time.Now()
		var b events.BudgetChanged
		err := codec.Unmarshal(m.Data, &b)
		received <- arrival{int(b.CausedBy.Seq) - 1, at, err}
	})
	if err != nil {
		return nil, err
	}
	return received, nc.Flush()
}

// pace publishes every turn when it is due, without waiting for acks.
func (e environment) pace(ctx context.Context, f *fleet, n int, on schedule) error {
	_, err := send(ctx, e.JS, n, func(i int) *nats.Msg {
		m := f.message(i)
		time.Sleep(time.Until(on.due(i)))
		return m
	})
	return err
}
