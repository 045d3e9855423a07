package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
)

// A worker is not ready when its server has missed three checks in a row. An answer in between
// resets the count.
func TestReadinessOfSlowServer(t *testing.T) {
	dir := t.TempDir()
	workertest.EmptyPools()
	defer workertest.EmptyPools()
	ats.Register() // starts the server's own clock outside of the bubble
	defer ats.Unregister()
	synctest.Test(t, func(t *testing.T) {
		env := workertest.Open(t, embedded.Config{Dir: dir, Durability: embedded.DurablePower}, topology.Config{Partitions: 4})
		defer env.Stop()
		m, err := worker.NewMonitor(worker.MonitorConfig{Listen: "127.0.0.1:-1", Data: dir})
		if err != nil {
			t.Fatal(err)
		}
		link := &cable{to: env.Server}
		wk, err := worker.New(worker.Config{
			Read: env.Connect(), Commit: link.connect(t), Streams: env.Streams, Compaction: env.Config, Owner: "a", Listener: m.Listener(),
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
			time.Sleep(1100 * time.Millisecond) // the last result has expired
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
