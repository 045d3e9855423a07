package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/summarize"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
	"compactd/tools/harness"
)

// environment is an embedded server and a worker on it, as cmd/worker starts them.
type environment struct {
	*harness.Server
	worker *harness.Worker
}

// openEnvironment starts a server and a worker, and waits until it takes turns.
func openEnvironment(ctx context.Context, dir string, s summarize.Summarizer, l observe.Listener) (*environment, error) {
	server, err := harness.Start(ctx, dir, "eval")
	if err != nil {
		return nil, err
	}
	c, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		server.Close()
		return nil, err
	}
	w, err := server.Serve(ctx, worker.Config{Compaction: c, Summarizer: s, Listener: l})
	if err != nil {
		server.Close()
		return nil, err
	}
	e := &environment{server, w}
	if err := w.Await(ctx, w.Ready()); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// close stops the worker in good order, and the server.
func (e *environment) close() error {
	err := e.worker.Stop()
	e.Close()
	return err
}

// send publishes an event without waiting for its ack.
func (e *environment) send(k events.Kind, session string, data []byte) (jetstream.PubAckFuture, error) {
	subject, err := events.Input(k, events.Address{Tenant: "default", Session: session})
	if err != nil {
		return nil, err
	}
	return e.JS.PublishAsync(subject, data, jetstream.WithStallWait(time.Minute))
}

// turnOf is a session.turn of some messages that take about so many tokens each,
// for a model with a window.
func turnOf(window, messages, tokens int) []byte {
	const word = "tokens "
	rate := measure.NewRate(measure.Profiles["default"], "openai")
	list := make([]map[string]string, messages)
	for i := range list {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		text := fmt.Sprintf("%d %d ", i, tokens)
		for rate.Count(text) < measure.Tokens(tokens) {
			text += word
		}
		list[i] = map[string]string{"role": role, "content": text}
	}
	ceiling := 0.1
	if window < 10_000 { // else there is no room for a model's summary
		ceiling = 0.3
	}
	data, err := codec.Marshal(map[string]any{
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
