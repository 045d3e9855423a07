package agenttest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker"
)

// Compactd runs a worker with an embedded server until the test ends, and returns
// where agents connect.
func Compactd(t *testing.T) (url string) {
	t.Helper()
	url, stop, err := Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return url
}

// Start is Compactd where there is no test: in a directory, until stop is called.
func Start(ctx context.Context, dir string) (url string, stop func() error, err error) {
	server, err := embedded.Start(embedded.Config{Dir: dir, Listen: "127.0.0.1:-1"})
	if err != nil {
		return "", nil, err
	}
	w, err := newWorker(ctx, server)
	if err != nil {
		server.Stop()
		return "", nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- w.Run(run) }()
	stop = func() error {
		cancel()
		defer server.Stop() // and with it the worker's connections
		return <-done
	}
	select {
	case <-w.Ready():
		return server.ClientURL(), stop, nil
	case err := <-done:
		cancel()
		server.Stop()
		return "", nil, fmt.Errorf("run worker: %w", err)
	}
}

func newWorker(ctx context.Context, server *embedded.Server) (*worker.Worker, error) {
	read, err := connect.Open(ctx, connect.Options{InProcess: server})
	if err != nil {
		return nil, err
	}
	commit, err := connect.Open(ctx, connect.Options{InProcess: server})
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(read, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		return nil, err
	}
	streams, err := topology.Ensure(ctx, js, topology.Config{Partitions: 2, CreateBytes: 1 << 30})
	if err != nil {
		return nil, err
	}
	config, err := compaction.NewConfig(compaction.DefaultPolicy(), compaction.DefaultWindows())
	if err != nil {
		return nil, err
	}
	return worker.New(worker.Config{
		Read: read, Commit: commit, Streams: streams, Compaction: config, Owner: "example", Summarizer: extract.New(),
	})
}
