package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize/llm"
	"compactd/internal/summarize/provider"
	"compactd/internal/summarize/summarizetest"
	"compactd/internal/worker/observe"
	"compactd/tools/harness"
)

// backlog is how much is in the way of an overflow.
type backlog struct {
	rounds int // overflows, each of a session of its own
	jobs   int // that wait
	turns  int // queued before each overflow, in its partition
}

// pulled is more than the jobs that summarizers work on, or have fetched.
const pulled = 32

// refusal is the answer of a provider when a call is too long.
const refusal = `{"v":1,"id":"o","status":400,"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 20480 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`

// overflows is an environment in which everything waits.
type overflows struct {
	*environment
	backlog
	busy  int          // the partition of the overflows
	hold  sync.RWMutex // held while turns pile up in front of that partition
	names []string     // of the sessions that overflow
	piles []string     // of those whose turns are queued
}

// evalOverflow prints the time from an overflow to the compaction that its agent
// receives, while a model hangs and jobs and turns wait.
func evalOverflow(ctx context.Context, c backlog, dir string, p printer) (err error) {
	server, stop := summarizetest.Open(nil)
	defer stop()
	server.Script(summarizetest.Hang)
	m, err := provider.New(server.Config(summarizetest.OpenAI))
	if err != nil {
		return err
	}
	w := &overflows{backlog: c}
	w.name()
	w.environment, err = openEnvironment(ctx, filepath.Join(dir, "overflow"), llm.New(m), observe.Listener{
		Applied: func(f observe.Applied) {
			if f.Partition == w.busy {
				w.hold.RLock()
				defer w.hold.RUnlock()
			}
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.fill(ctx); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	var ms []float64
	for _, name := range w.names {
		d, err := w.round(ctx, name)
		if err != nil {
			return fmt.Errorf("overflow: %w", err)
		}
		ms = append(ms, float64(d)/float64(time.Millisecond))
	}
	waiting, err := w.waitingJobs(ctx) // after all, no fewer than before
	if err != nil {
		return err
	}
	if waiting < c.jobs || server.Calls() == 0 {
		return fmt.Errorf("%d jobs wait, not %d; the model was called %d times", waiting, c.jobs, server.Calls())
	}
	p.line("overflow_p99_ms", harness.Quantile(ms, 0.99), atMost(250),
		fmt.Sprintf("p50 %s, the most %s, of %d; %d jobs waited, %d turns were queued before each", number(harness.Median(ms)), number(harness.Quantile(ms, 1)), len(ms), waiting, c.turns))
	return nil
}

// name finds names of sessions in the busy partition.
func (w *overflows) name() {
	take := func(prefix string, n int) (out []string) {
		for i := 0; len(out) < n; i++ {
			name := fmt.Sprintf("%s%d", prefix, i)
			if events.PartitionOf(events.Address{Tenant: "default", Session: name}, harness.Partitions) == w.busy {
				out = append(out, name)
			}
		}
		return out
	}
	w.names, w.piles = take("overflow", w.rounds), take("pile", 50)
}

// fill lets jobs pile up, more than are wanted since some are being worked on, and
// gives the sessions that will overflow a history.
func (w *overflows) fill(ctx context.Context) error {
	var acks []jetstream.PubAckFuture
	send := func(session string, data []byte) error {
		a, err := w.send(events.KindTurn, session, data)
		acks = append(acks, a)
		return err
	}
	preparing, triggered := turnOf(3_000, 8, 273), turnOf(3_000, 8, 319)
	for i := range w.jobs + pulled {
		turn := preparing
		if i%2 == 0 {
			turn = triggered
		}
		if err := send(fmt.Sprintf("crowd%d", i), turn); err != nil {
			return err
		}
	}
	history := turnOf(128_000, 200, 60)
	for _, name := range w.names {
		if err := send(name, history); err != nil {
			return err
		}
	}
	if _, err := harness.Acked(ctx, acks); err != nil {
		return err
	}
	return w.Decided(ctx)
}

// waitingJobs counts the jobs that are not done, those that a worker holds back included.
func (w *overflows) waitingJobs(ctx context.Context) (n int, err error) {
	for _, lane := range events.Lanes {
		c, err := w.JS.Consumer(ctx, topology.OutcomesStream, "summarizer-"+string(lane))
		if err != nil {
			return 0, err
		}
		i := c.CachedInfo()
		n += int(i.NumPending) + i.NumAckPending
	}
	return n, nil
}

// round queues turns, then reports an overflow, and returns how long its agent
// waits for the compaction. The partition's worker stands still until all turns
// are stored, so that not one of them is done before.
func (w *overflows) round(ctx context.Context, name string) (time.Duration, error) {
	received := make(chan *nats.Msg, 1)
	sub, err := w.Conn.ChanSubscribe(events.Published(events.KindCompacted, events.Address{Tenant: "default", Session: name}), received)
	if err != nil {
		return 0, err
	}
	defer sub.Unsubscribe()
	began, err := w.pile(ctx, name)
	if err != nil {
		return 0, err
	}
	select {
	case m := <-received:
		took := time.Since(began)
		var c events.Compacted
		if err := codec.Unmarshal(m.Data, &c); err != nil {
			return 0, err
		}
		if !c.Compacted || c.Reason != events.ReasonOverflow {
			return 0, fmt.Errorf("session %s received %s, code %q", name, c.Reason, c.Code)
		}
		return took, nil
	case <-time.After(harness.Limit):
		return 0, errors.New("no compaction was published")
	}
}

// pile queues the turns and the overflow behind them; it returns when the overflow
// was published.
func (w *overflows) pile(ctx context.Context, name string) (began time.Time, err error) {
	w.hold.Lock()
	defer w.hold.Unlock()
	var acks []jetstream.PubAckFuture
	turn := turnOf(4_000_000, 2, 220) // never compacted, however many rounds
	for i := range w.turns {
		a, err := w.send(events.KindTurn, w.piles[i%len(w.piles)], turn)
		if err != nil {
			return began, err
		}
		acks = append(acks, a)
	}
	if _, err := harness.Acked(ctx, acks); err != nil {
		return began, err
	}
	began = time.Now()
	_, err = w.send(events.KindOverflow, name, []byte(refusal))
	return began, err
}
