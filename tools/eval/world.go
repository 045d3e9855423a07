package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/summarize"
	"compactd/internal/worker"
)

// partitions of every log here.
const partitions = 8

// limit bounds a wait that only a defect makes long.
const limit = 2 * time.Minute

// world is an embedded server and a worker on it, as cmd/worker starts them.
type world struct {
	server  *embedded.Server
	conns   []*nats.Conn
	js      jetstream.JetStream // of the agents
	streams *topology.Streams
	cancel  context.CancelFunc
	stopped chan error // nil before the worker runs
}

// openWorld starts a server and a worker, and waits until it takes turns.
func openWorld(ctx context.Context, dir string, s summarize.Summarizer, l worker.Listener) (w *world, err error) {
	w = &world{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.server, err = embedded.Start(embedded.Config{Dir: dir}); err != nil {
		return w, err
	}
	for range 3 {
		nc, err := connect.Open(ctx, connect.Options{InProcess: w.server, Name: "compactd eval"})
		if err != nil {
			return w, err
		}
		w.conns = append(w.conns, nc)
	}
	if w.js, err = jetstream.New(w.conns[0], jetstream.WithPublishAsyncMaxPending(8192)); err != nil {
		return w, err
	}
	if w.streams, err = topology.Ensure(ctx, w.js, topology.Config{Partitions: partitions, CreateBytes: w.server.StreamBytes()}); err != nil {
		return w, err
	}
	c, err := compaction.NewConfig(compaction.DefaultPolicy(), compaction.DefaultWindows())
	if err != nil {
		return w, err
	}
	wk, err := worker.New(worker.Config{
		OutcomeBytes: -1, // what a bound leaves out would not be measured
		Read:         w.conns[1], Commit: w.conns[2], Streams: w.streams, Compaction: c, Owner: fmt.Sprintf("eval-%d", time.Now().UnixNano()),
		Summarizer: s, Listener: l,
	})
	if err != nil {
		return w, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	w.stopped = make(chan error, 1)
	go func() { w.stopped <- wk.Run(ctx) }()
	return w, w.await(wk.Ready())
}

// await waits for something, as long as the worker runs.
func (w *world) await(there <-chan struct{}) error {
	select {
	case <-there:
		return nil
	case err := <-w.stopped:
		w.stopped <- err
		return fmt.Errorf("the worker stopped: %w", err)
	case <-time.After(limit):
		return fmt.Errorf("not done within %v", limit)
	}
}

// settle waits until the worker has decided on the whole log.
func (w *world) settle(ctx context.Context) error {
	state, err := topology.State(ctx, w.js, topology.LogStream)
	if err != nil {
		return err
	}
	return commit.AwaitCursor(ctx, w.js, partitions, state.Last)
}

// close stops the worker in good order, and the server.
func (w *world) close() (err error) {
	if w.stopped != nil {
		w.cancel()
		err = <-w.stopped
	}
	for _, nc := range w.conns {
		nc.Close()
	}
	if w.server != nil {
		w.server.Stop()
	}
	return err
}

// send publishes an event without waiting for its ack.
func (w *world) send(k events.Kind, session string, data []byte) (jetstream.PubAckFuture, error) {
	subject, err := events.Input(k, events.Address{Tenant: "default", Session: session})
	if err != nil {
		return nil, err
	}
	return w.js.PublishAsync(subject, data, jetstream.WithStallWait(time.Minute))
}

// acked waits for acks, and returns the sequences.
func acked(ctx context.Context, acks []jetstream.PubAckFuture) ([]uint64, error) {
	var out []uint64
	for _, a := range acks {
		select {
		case ok := <-a.Ok():
			out = append(out, ok.Sequence)
		case err := <-a.Err():
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// turnOf is a session.turn of some messages that take about so many tokens each,
// for a model with a window.
func turnOf(window, messages, tokens int) []byte {
	const word = "tokens "
	rate := compaction.NewRate(compaction.Profiles["default"], "openai")
	list := make([]map[string]string, messages)
	for i := range list {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		text := fmt.Sprintf("%d %d ", i, tokens)
		for rate.Count(text) < compaction.Tokens(tokens) {
			text += word
		}
		list[i] = map[string]string{"role": role, "content": text}
	}
	ceiling := 0.1
	if window < 10_000 { // else there is no room for a model's summary
		ceiling = 0.3
	}
	data, err := events.Marshal(map[string]any{
		"v":        1,
		"model":    map[string]any{"provider": "openai", "name": "gpt-4o", "context_window": window, "max_output_tokens": window / 8},
		"messages": list,
		"policy":   map[string]any{"summarize": map[string]any{"ceiling_share": ceiling}},
	})
	if err != nil {
		panic(err) // strings and numbers
	}
	return data
}
