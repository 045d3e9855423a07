package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/worker"
)

// A server that misses an answer does not make a worker not ready: it takes three checks in
// a row. A server that answers again in between begins the count again.
func TestReadinessOfSlowServer(t *testing.T) {
	dir := t.TempDir()
	emptyPools()
	defer emptyPools()
	ats.Register() // a clock of the server's own, which must not be one of the bubble's
	defer ats.Unregister()
	synctest.Test(t, func(t *testing.T) {
		w := openWorld(t, embedded.Config{Dir: dir, Durability: embedded.DurablePower}, topology.Config{Partitions: 4})
		defer w.stop()
		m, err := worker.NewMonitor(worker.MonitorConfig{Listen: "127.0.0.1:-1", Data: dir})
		if err != nil {
			t.Fatal(err)
		}
		link := &cable{to: w.server}
		wk, err := worker.New(worker.Config{
			Read: w.connect(), Commit: link.connect(t), Streams: w.streams, Compaction: w.config, Owner: "a", Listener: m.Listener(),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		if err := m.Watch(wk, ctx.Done()); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- wk.Run(ctx) }()
		<-wk.Ready()
		want := func(when string, ready bool) {
			t.Helper()
			time.Sleep(1100 * time.Millisecond) // the last result is no longer good
			if r := m.Readiness(ctx); r.Ready != ready {
				t.Errorf("%s: %+v, want ready %t", when, r, ready)
			}
		}
		want("at first", true)
		for range 2 {
			link.hold()
			want("the first miss", true)
			want("the second miss", true)
			link.release()
			want("an answer", true)
		}
		link.hold()
		want("the first miss", true)
		want("the second miss", true)
		want("the third miss", false)
		link.release()
		want("an answer again", true)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
