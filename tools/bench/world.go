package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker"
)

// partitions of every log here.
const partitions = 8

// world is an embedded server with the two streams.
type world struct {
	server  *embedded.Server
	conn    *nats.Conn
	js      jetstream.JetStream
	streams *topology.Streams
}

func openWorld(ctx context.Context, dir string) (_ *world, err error) {
	w := &world{}
	if w.server, err = embedded.Start(embedded.Config{Dir: dir, Listen: "127.0.0.1:-1"}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.conn, err = w.connect(ctx); err != nil {
		return nil, err
	}
	if w.js, err = jetstream.New(w.conn, jetstream.WithPublishAsyncMaxPending(8192)); err != nil {
		return nil, err
	}
	return w, w.ensure(ctx)
}

func (w *world) ensure(ctx context.Context) (err error) {
	w.streams, err = topology.Ensure(ctx, w.js, topology.Config{Partitions: partitions, CreateBytes: w.server.StreamBytes()})
	return err
}

func (w *world) connect(ctx context.Context) (*nats.Conn, error) {
	return connect.Open(ctx, connect.Options{InProcess: w.server, Name: "compactd bench"})
}

func (w *world) close() {
	if w.conn != nil {
		w.conn.Close()
	}
	w.server.Stop()
}

// forget drops all outcomes and snapshots: the next worker finds a backlog again.
func (w *world) forget(ctx context.Context) error {
	if err := w.js.DeleteStream(ctx, topology.OutcomesStream); err != nil {
		return err
	}
	if err := snapshot.New(w.js).Erase(ctx); err != nil {
		return err
	}
	return w.ensure(ctx)
}

// publish sends turns as fast as the server takes them, and returns their bytes.
func (w *world) publish(ctx context.Context, f *fleet, n int) (bytes int64, err error) {
	acks := make([]jetstream.PubAckFuture, n)
	for i := range acks {
		m := f.message(i)
		bytes += int64(len(m.Data))
		if acks[i], err = w.js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute)); err != nil {
			return bytes, err
		}
	}
	return bytes, settle(ctx, acks)
}

// settle waits for every ack.
func settle(ctx context.Context, acks []jetstream.PubAckFuture) error {
	for _, a := range acks {
		select {
		case <-a.Ok():
		case err := <-a.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// serving is a worker that runs in this process, as cmd/worker starts it.
type serving struct {
	worker *worker.Worker
	conns  []*nats.Conn
	cancel context.CancelFunc
	done   chan error
}

// serve starts a worker; ledgers is the folder of its checkpoints, "" for none.
func (w *world) serve(ctx context.Context, c *compaction.Config, ledgers string, l worker.Listener) (*serving, error) {
	s := &serving{done: make(chan error, 1)}
	for range 2 {
		nc, err := w.connect(ctx)
		if err != nil {
			s.hangUp()
			return nil, err
		}
		s.conns = append(s.conns, nc)
	}
	var err error
	s.worker, err = worker.New(worker.Config{
		OutcomeBytes: -1, // what a bound leaves out would not be measured
		Read:         s.conns[0], Commit: s.conns[1], Streams: w.streams, Compaction: c, Owner: fmt.Sprintf("bench-%d", time.Now().UnixNano()),
		Summarizer: extract.New(), Listener: l, Dir: ledgers,
	})
	if err != nil {
		s.hangUp()
		return nil, err
	}
	ctx, s.cancel = context.WithCancel(ctx)
	go func() { s.done <- s.worker.Run(ctx) }()
	return s, nil
}

// errSlow bounds a wait that only a defect makes long.
var errSlow = errors.New("not done within two minutes")

// await waits for the worker to get somewhere.
func (s *serving) await(ctx context.Context, there <-chan struct{}) error {
	select {
	case <-there:
		return nil
	case err := <-s.done:
		s.done <- err
		return fmt.Errorf("the worker stopped: %w", err)
	case <-time.After(2 * time.Minute):
		return errSlow
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop ends the worker in good order.
func (s *serving) stop() error {
	s.cancel()
	err := <-s.done
	s.hangUp()
	return err
}

func (s *serving) hangUp() {
	for _, nc := range s.conns {
		nc.Close()
	}
}
