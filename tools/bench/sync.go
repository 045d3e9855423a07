package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"golang.org/x/sync/errgroup"

	"compactd/internal/broker/retry"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/worker/observe"
	"compactd/tools/harness"
)

const (
	syncRate     = 500 // syncs/s, beside [latencyRate] turns/s of other sessions
	syncSessions = 100 // that they are of, each with a history of its own
)

// measureSync measures every round on a server, a log and ledgers of its own.
func measureSync(ctx context.Context, o options, dir string, p printer) error {
	var p50, p99, late, whole []float64
	for range o.rounds {
		dir := filepath.Join(dir, "sync")
		r, err := syncs(ctx, dir, o)
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			return err
		}
		p50, p99, late = append(p50, harness.Median(r.ms)), append(p99, harness.Quantile(r.ms, 0.99)), append(late, float64(r.late))
		whole = append(whole, float64(r.whole))
	}
	p.line("sync_p50_ms", harness.Median(p50), "ms")
	p.line(lineSync, harness.Median(p99), "ms")
	p.line("sync_late", harness.Median(late), "count")
	p.line("sync_whole", harness.Median(whole), "count")
	return nil
}

// syncsDone is how many milliseconds each sync took from when it was due, and how many
// answers came before the decision; whole is how often all of a history had to be sent.
type syncsDone struct {
	ms          []float64
	late, whole int
}

// syncs sends syncs on time while turns of other sessions are published on time.
func syncs(ctx context.Context, dir string, o options) (all syncsDone, err error) {
	f, err := newFleet(max(o.seconds*latencyRate, turnsPerSession))
	if err != nil {
		return all, err
	}
	c, err := f.lean()
	if err != nil {
		return all, err
	}
	e, err := openEnvironment(ctx, filepath.Join(dir, "log"))
	if err != nil {
		return all, err
	}
	defer e.Close()
	s, err := e.serve(ctx, c, filepath.Join(dir, "ledgers"), observe.Listener{})
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := s.Await(ctx, s.Ready()); err != nil {
		return all, err
	}
	agents, err := e.Connect(ctx)
	if err != nil {
		return all, err
	}
	defer agents.Close()
	n := max(o.seconds*syncRate, 20)
	var callers []*caller
	for i := range min(syncSessions, n/2) {
		x := &caller{nc: agents, f: f, session: i}
		if err := x.begin(ctx, o.history); err != nil {
			return all, fmt.Errorf("begin: %w", err)
		}
		callers = append(callers, x)
	}
	on := schedule{time.Now().Add(100 * time.Millisecond)}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.pace(ctx, f, f.sessions*turnsPerSession, on) })
	for i, x := range callers {
		g.Go(func() error {
			for k := i; k < n; k += len(callers) {
				if err := x.next(ctx, on.start.Add(time.Duration(k)*time.Second/syncRate)); err != nil {
					return fmt.Errorf("sync %d: %w", k, err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return all, err
	}
	for _, x := range callers {
		all.ms, all.late, all.whole = append(all.ms, x.done.ms...), all.late+x.done.late, all.whole+x.done.whole
	}
	return all, nil
}

// caller is an agent that sends its history before each call.
type caller struct {
	nc      *nats.Conn
	f       *fleet
	session int
	turns   int // exchanges that it has made
	last    events.SyncResponse
	done    syncsDone
}

// begin sends a history of so many bytes, when a worker answers.
func (c *caller) begin(ctx context.Context, size int) error {
	for at := 0; at < size; c.turns++ {
		at += len(c.f.body(c.session, c.turns))
	}
	return retry.Every(10*time.Millisecond).Until(ctx, func() (bool, error) {
		err := c.sync(ctx, c.history(), `,"wait_ms":8000`)
		if errors.Is(err, nats.ErrNoResponders) {
			return false, nil
		}
		return true, err
	})
}

// history is all that the agent has.
func (c *caller) history() string {
	messages := []string{question}
	for i := range c.turns {
		messages = append(messages, c.f.body(c.session, i))
	}
	return strings.Join(messages, ",")
}

// next sends what is new when it is due: an answer with a call, and its result. Where the worker
// does not know what was before, as after a late answer, it sends all.
func (c *caller) next(ctx context.Context, due time.Time) error {
	more := fmt.Sprintf(`,"prefix":{"count":%d,"hash":%q}`, c.last.Count, c.last.Hash)
	body, known := c.f.body(c.session, c.turns), c.last.Count > 0
	c.turns++
	time.Sleep(time.Until(due))
	if known {
		if err := c.sync(ctx, body, more); err != nil {
			return err
		}
	}
	if !known || c.last.Need != "" {
		c.done.whole++
		if err := c.sync(ctx, c.history(), ""); err != nil {
			return err
		}
	}
	c.done.ms = append(c.done.ms, float64(time.Since(due))/float64(time.Millisecond))
	for _, w := range c.last.Warnings {
		if w.Code == events.CodeLate {
			c.done.late++
		}
	}
	return nil
}

// sync sends messages with more fields, in a window that nothing fills.
func (c *caller) sync(ctx context.Context, messages, more string) error {
	in := fmt.Appendf(nil, `{"session":"sync-%d","format":"anthropic","model":{"provider":"anthropic","name":"claude-sonnet-4-20250514","max_output_tokens":%d,"context_window":%d},"messages":[%s]%s}`,
		c.session, reserve, 1<<30, messages, more)
	reply, err := c.nc.RequestWithContext(ctx, events.SubjectSync, in)
	if err != nil {
		return err
	}
	if code := reply.Header.Get(micro.ErrorCodeHeader); code != "" {
		return fmt.Errorf("%s: %s", code, reply.Data)
	}
	c.last = events.SyncResponse{}
	return codec.Unmarshal(reply.Data, &c.last)
}
