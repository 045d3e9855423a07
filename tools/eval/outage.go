package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/worker/observe"
	"compactd/tools/harness"
)

// outages are the ways in which a model fails.
var outages = []summarizetest.Mode{
	summarizetest.Hang, summarizetest.Drip, summarizetest.RateLimited, summarizetest.ServerError, summarizetest.Reset,
	summarizetest.CutJSON, summarizetest.Empty, summarizetest.Length, summarizetest.Endless, summarizetest.Redirect,
}

// load is what agents publish while a model fails.
type load struct {
	modes    []summarizetest.Mode
	rounds   int
	sessions int
	turns    int // of each session in one round
	warm     int // turns of each session before, which are not measured
	rate     int // turns/s of all sessions, whatever happens
}

// apart is how many turns of a session lie between two compactions, about. Sessions
// begin at so many different places, so that not all are compacted at once.
const apart = 6

// order is which session publishes, turn by turn, and where the measured turns begin.
func (l load) order() (sessions []int, measured int) {
	for k := range apart + l.warm + l.turns {
		if k == apart+l.warm {
			measured = len(sessions)
		}
		for s := range l.sessions {
			if k >= s%apart {
				sessions = append(sessions, s)
			}
		}
	}
	return sessions, measured
}

// evalOutage prints the p99 of turns while a model fails over that while it works,
// measured one after the other, in turns, on servers of their own.
func evalOutage(ctx context.Context, l load, dir string, p printer) error {
	worst := 0.0
	for _, mode := range l.modes {
		var ratios, bad, good []float64
		for round := range l.rounds {
			b, g, err := pairOf(ctx, l, mode, round%2 == 0, dir)
			if err != nil {
				return fmt.Errorf("%s: %w", mode, err)
			}
			ratios, bad, good = append(ratios, b/g), append(bad, b), append(good, g)
		}
		ratio := harness.Median(ratios)
		worst = max(worst, ratio)
		p.line("outage_latency_ratio/"+strings.ReplaceAll(string(mode), " ", "_"), ratio, goal{},
			fmt.Sprintf("p99 %s over %s ms, medians of %d", number(harness.Median(bad)), number(harness.Median(good)), l.rounds))
	}
	p.line("outage_latency_ratio", worst, atMost(1.2), "the worst of the above")
	return nil
}

// pairOf measures a mode and a model that works, either first.
func pairOf(ctx context.Context, l load, mode summarizetest.Mode, badFirst bool, dir string) (bad, good float64, err error) {
	measure := func(m summarizetest.Mode) float64 {
		if err != nil {
			return 0
		}
		var ms []float64
		dir := filepath.Join(dir, "outage")
		ms, err = latencies(ctx, l, m, dir)
		err = errors.Join(err, os.RemoveAll(dir))
		return harness.Quantile(ms, 0.99)
	}
	if badFirst {
		bad = measure(mode)
	}
	good = measure(summarizetest.Good)
	if !badFirst {
		bad = measure(mode)
	}
	return bad, good, err
}

// clock notes when something became of each event.
type clock struct {
	mu   sync.Mutex // guards the fields below
	seen map[uint64]time.Time
}

func newClock() *clock { return &clock{seen: map[uint64]time.Time{}} }

// note keeps the first time.
func (c *clock) note(seq uint64) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.seen[seq]; !ok {
		c.seen[seq] = now
	}
}

// of returns when it was noted.
func (c *clock) of(seq uint64) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.seen[seq]
	return at, ok
}

// latencies publishes turns on time to a new worker, and returns how many
// milliseconds each took from then: until its agent received the outcome, or else
// until it was decided.
func latencies(ctx context.Context, l load, mode summarizetest.Mode, dir string) (ms []float64, err error) {
	server, stop := summarizetest.Open(poorSummary)
	defer stop()
	server.Script(mode)
	m, err := provider.New(server.Config(summarizetest.OpenAI))
	if err != nil {
		return nil, err
	}
	applied, received := newClock(), newClock()
	w, err := openEnvironment(ctx, dir, llm.New(m), observe.Listener{
		Applied: func(f observe.Applied) { applied.note(uint64(f.Seq)) },
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	drain, err := w.subscribe(ctx, received)
	if err != nil {
		return nil, err
	}
	runtime.GC()
	due, seqs, err := w.pace(ctx, l)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.Decided(ctx), drain()); err != nil {
		return nil, err
	}
	_, measured := l.order()
	for i := measured; i < len(seqs); i++ {
		at, ok := received.of(seqs[i])
		if !ok {
			at, ok = applied.of(seqs[i])
		}
		if !ok {
			return nil, fmt.Errorf("turn at %d was not decided", seqs[i])
		}
		ms = append(ms, float64(at.Sub(due[i]))/float64(time.Millisecond))
	}
	if mode != summarizetest.Good && server.Calls() == 0 {
		return nil, errors.New("the model was not called")
	}
	return ms, nil
}

// subscribe notes what agents receive, until drain has returned.
func (w *environment) subscribe(ctx context.Context, received *clock) (drain func() error, err error) {
	var subs []*nats.Subscription
	done := make(chan struct{}, 2)
	for _, k := range []events.Kind{events.KindCompacted, events.KindBudget} {
		sub, err := w.Conn.Subscribe(events.Published(k, events.Address{Tenant: "*", Session: "*"}), func(m *nats.Msg) {
			var o struct {
				CausedBy events.Cause `json:"caused_by"`
			}
			if codec.Unmarshal(m.Data, &o) == nil {
				received.note(o.CausedBy.Seq)
			}
		})
		if err != nil {
			return nil, err
		}
		sub.SetClosedHandler(func(string) { done <- struct{}{} })
		subs = append(subs, sub)
	}
	return func() error {
		for _, sub := range subs {
			if err := sub.Drain(); err != nil {
				return err
			}
			if err := w.worker.Await(ctx, done); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// pace publishes every turn when it is due.
func (w *environment) pace(ctx context.Context, l load) (due []time.Time, seqs []uint64, err error) {
	var acks []jetstream.PubAckFuture
	turn := turnOf(16_000, 2, 500)
	start := time.Now().Add(50 * time.Millisecond)
	order, _ := l.order()
	for i, session := range order {
		at := start.Add(time.Duration(i) * time.Second / time.Duration(l.rate))
		time.Sleep(time.Until(at))
		a, err := w.send(events.KindTurn, fmt.Sprintf("agent%d", session), turn)
		if err != nil {
			return nil, nil, err
		}
		due, acks = append(due, at), append(acks, a)
	}
	seqs, err = harness.Acked(ctx, acks)
	return due, seqs, err
}
