package agenttest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/client"
	"compactd/internal/broker/connect"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/compaction/policy"
	"compactd/internal/summarize/extract"
	"compactd/internal/worker"
	"compactd/internal/worker/agents"
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

// WithEdge is Compactd with a listener for agents, for the tokens of a file: NATS clients connect
// to url, HTTP clients to http://addr.
func WithEdge(t *testing.T, tokens string) (url, addr string) {
	t.Helper()
	url, addr, stop, err := StartEdge(t.Context(), t.TempDir(), tokens)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return url, addr
}

// HTTP is WithEdge as the agents of package transport and of [client.Conversation] use it.
func HTTP(t *testing.T) *client.HTTP {
	t.Helper()
	const token = "a-token"
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "%x default agent\n", sha256.Sum256([]byte(token))), 0o600); err != nil {
		t.Fatal(err)
	}
	_, addr := WithEdge(t, tokens)
	return &client.HTTP{URL: "http://" + addr, Token: token}
}

// StartEdge is WithEdge where there is no test: in a directory, until stop is called.
func StartEdge(ctx context.Context, dir, tokens string) (url, addr string, stop func() error, err error) {
	var end func() error
	url, stopWorker, err := start(ctx, dir, func(w *worker.Worker) error {
		e, err := agents.New(agents.Config{Listen: "127.0.0.1:-1", Tokens: tokens, Service: w.Service()})
		if err != nil {
			return err
		}
		run, cancel := context.WithCancel(context.WithoutCancel(ctx))
		ended := make(chan error, 1)
		go func() { ended <- e.Run(run) }()
		end = func() error {
			cancel()
			return <-ended
		}
		addr = e.Addr()
		return nil
	})
	return url, addr, func() error { return errors.Join(end(), stopWorker()) }, err
}

// Start is Compactd where there is no test: in a directory, until stop is called.
func Start(ctx context.Context, dir string) (url string, stop func() error, err error) {
	return start(ctx, dir, func(*worker.Worker) error { return nil })
}

// start runs a worker, and what goes with it.
func start(ctx context.Context, dir string, beside func(*worker.Worker) error) (url string, stop func() error, err error) {
	server, err := embedded.Start(embedded.Config{Dir: dir, Listen: "127.0.0.1:-1"})
	if err != nil {
		return "", nil, err
	}
	c, err := newConfig(ctx, server)
	if err != nil {
		server.Stop()
		return "", nil, err
	}
	w, err := worker.New(c)
	if err == nil {
		err = beside(w)
	}
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

func newConfig(ctx context.Context, server *embedded.Server) (worker.Config, error) {
	read, err := connect.Open(ctx, connect.Options{InProcess: server})
	if err != nil {
		return worker.Config{}, err
	}
	commit, err := connect.Open(ctx, connect.Options{InProcess: server})
	if err != nil {
		return worker.Config{}, err
	}
	js, err := jetstream.New(read, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		return worker.Config{}, err
	}
	streams, err := topology.Ensure(ctx, js, topology.Config{Partitions: 2, CreateBytes: 1 << 30})
	if err != nil {
		return worker.Config{}, err
	}
	config, err := compaction.NewConfig(policy.Default(), measure.DefaultWindows())
	if err != nil {
		return worker.Config{}, err
	}
	return worker.Config{
		Read: read, Commit: commit, Streams: streams, Compaction: config, Owner: "example", Summarizer: extract.New(),
	}, nil
}
