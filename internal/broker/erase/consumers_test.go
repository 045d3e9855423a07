package erase

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
)

// A server keeps the consumer of a read for minutes, and has a thousand: none is left
// by a read that reached its end, was broken off, or found nothing, nor by a wait for
// an erasure.
func TestNoConsumerIsLeft(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	for range 5 {
		w.Turn("s", "text")
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancel(t.Context())
	for name, read := range map[string]func() error{
		"end": func() error {
			return stream.ReadStream(t.Context(), w.JS, topology.LogStream, "log.>", 1, 0, func(jetstream.Msg, uint64) error { return nil })
		},
		"error": func() error {
			return stream.ReadStream(t.Context(), w.JS, topology.LogStream, "log.>", 1, 0, func(jetstream.Msg, uint64) error { return enough })
		},
		"cancelled": func() error {
			return stream.ReadStream(ctx, w.JS, topology.LogStream, "log.>", 1, 0, func(jetstream.Msg, uint64) error { cancel(); <-ctx.Done(); return ctx.Err() })
		},
		"nothing": func() error {
			return stream.ReadStream(t.Context(), w.JS, topology.LogStream, "log.*.end.>", 1, 0, func(jetstream.Msg, uint64) error { return nil })
		},
	} {
		if err := read(); err != nil && !errors.Is(err, enough) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if n := w.readers(topology.LogStream); n != 0 {
			t.Errorf("%s: %d consumers are left", name, n)
		}
	}
	waiting, stop := context.WithCancel(t.Context())
	sub, err := w.NC.SubscribeSync("session.forget.>")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = sub.NextMsgWithContext(t.Context()); stop() }()
	var unserved *NotErasedError
	if _, err := Request(waiting, w.JS, events.Address{Tenant: "default", Session: "s"}, "f"); !errors.As(err, &unserved) {
		t.Errorf("without a worker: %v", err)
	}
	if n := w.readers(topology.OutcomesStream); n != 0 {
		t.Errorf("erase: %d consumers are left", n)
	}
}

// readers counts the consumers of a stream.
func (w *env) readers(stream string) int {
	w.T.Helper()
	s, err := w.JS.Stream(w.T.Context(), stream)
	if err != nil {
		w.T.Fatal(err)
	}
	return s.CachedInfo().State.Consumers
}
