package partition

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/testkit/freeport"
	"compactd/internal/worker/observe"
)

// A partition that is served while its server loses power, and with it the end of the log, ends: opened again it decides
// the events that came in the place of the lost ones.
func TestTruncatedWhileServed(t *testing.T) {
	t.Parallel()
	dir, before := t.TempDir(), filepath.Join(t.TempDir(), "before")
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	start := func() *embedded.Server {
		srv, err := embedded.Start(embedded.Config{Dir: dir, Listen: address})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(srv.Stop)
		return srv
	}
	log := func(dir string) (path string) {
		_ = filepath.WalkDir(dir, func(at string, d fs.DirEntry, _ error) error {
			if d.IsDir() && d.Name() == topology.LogStream {
				path = at
			}
			return nil
		})
		return path
	}
	env := &splitEnv{Env: &brokertest.Env{T: t, Srv: start()}}
	if env.NC, err = nats.Connect(env.Srv.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(env.NC.Close)
	env.JS = brokertest.NewJS(t, env.NC)
	if env.Streams, err = topology.Ensure(t.Context(), env.JS, topology.Config{Partitions: 1, CreateBytes: brokertest.CreateBytes}); err != nil {
		t.Fatal(err)
	}
	env.turn("kept", 1)
	env.Srv.Stop()
	if err := os.CopyFS(before, os.DirFS(log(dir))); err != nil {
		t.Fatal(err)
	}

	env.Srv = start()
	env.eventually("reconnect", func() (bool, error) { return env.NC.IsConnected(), nil })
	set := env.set("a", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all, end := NewStopTime(ctx, time.Minute)
	defer end()
	served, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- set.Serve(ctx, all, 0, func(observe.PartitionAcquired) { close(served) }, func() {})
	}()
	<-served
	for n := range 3 {
		env.turns(set, 0, "lost", env.turn("lost", n+1))
	}
	env.Srv.Stop()
	path := log(dir)
	if err := errors.Join(os.RemoveAll(path), os.CopyFS(path, os.DirFS(before))); err != nil {
		t.Fatal(err)
	}
	env.Srv = start()
	select {
	case err := <-ended:
		if !errors.Is(err, ErrTruncated) {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the partition is served on")
	}
	set.Unserve(0)
	set, _, _ = env.serve("b", 0, "")
	if n := env.turns(set, 0, "kept", env.turn("kept", 2)); n != 2 {
		t.Errorf("the session has %d turns", n)
	}
}
