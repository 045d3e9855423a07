package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/compress"
)

// A gateway gets its own messages back within 12 s while the broker is gone or frozen (docs/http.md): its listener
// would close the connection after 30 s.
func TestCompressWithoutBroker(t *testing.T) {
	withoutBroker(t, 1, func(t *testing.T, env *workertest.Env, read, commit *cable, dir string, lose func(*cable)) {
		nc := read.connect(t)
		wk, err := worker.New(worker.Config{Read: nc, Commit: commit.connect(t), Streams: env.Streams, Compaction: env.Config, Owner: "a", Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		done := make(chan error, 1)
		go func() { done <- wk.Run(ctx) }()
		<-wk.Ready()
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		c := compress.New(js, wk.Service(), func(error) {})
		in := &events.CompressRequest{Model: "gpt-4o", Messages: []codec.Raw{
			codec.Raw(`{"role":"user","content":"Why?"}`), codec.Raw(`{"role":"assistant","content":"Since."}`), codec.Raw(`{"role":"user","content":"And now?"}`),
		}}
		in.Config.SessionID = "s"
		lose(read)
		lose(commit)
		began := time.Now()
		out := c.Compress(ctx, "acme", in)
		if took := time.Since(began); out.Code != events.CodeUnavailable || len(out.Messages) != 3 || took > 12*time.Second {
			t.Errorf("%d messages with the code %q after %s: %s", len(out.Messages), out.Code, took, out.Message)
		}
		stop()
		<-done
	})
}
