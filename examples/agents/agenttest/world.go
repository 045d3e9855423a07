package agenttest

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker"
	"compactd/internal/broker/embedded"
	"compactd/internal/compaction"
	"compactd/internal/summarize"
	"compactd/internal/worker"
)

// Compactd runs a worker with an embedded server until the test ends, and returns
// where agents connect.
func Compactd(t *testing.T) (url string) {
	t.Helper()
	server, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	read, commit := connect(t, server), connect(t, server)
	js, err := jetstream.New(read)
	if err != nil {
		t.Fatal(err)
	}
	streams, err := broker.Ensure(t.Context(), js, broker.Topology{Partitions: 2, CreateBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	config, err := compaction.NewConfig(compaction.DefaultPolicy(), compaction.DefaultWindows())
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(worker.Config{
		Read: read, Commit: commit, Streams: streams, Compaction: config, Owner: "example", Summarizer: summarize.Embedded(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run worker: %v", err)
		}
	})
	select {
	case <-w.Ready():
	case <-time.After(time.Minute):
		t.Fatal("the worker is not ready")
	}
	return server.ClientURL()
}

func connect(t *testing.T, server *embedded.Server) *nats.Conn {
	t.Helper()
	nc, err := broker.Connect(t.Context(), broker.Options{InProcess: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
