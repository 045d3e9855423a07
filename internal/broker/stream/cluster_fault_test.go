//go:build faults

package stream_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/testkit/cluster"
)

// A leader that was cut off comes back, and for a second answers as if it still led: what
// a stream is reported to be never goes back behind what was acknowledged, and a read ends
// nowhere before that, whichever copy it reads from (P13).
func TestFaultClusterStaleLeader(t *testing.T) {
	w := cluster.StartStreams(t)
	c := w.TakeOver("a")
	stored, believed, reads := 0, 0, 0
	commit := func(n int) {
		for range n {
			stored++
			if err := c.Commit(t.Context(), []commit.Message{cluster.Message("x")}, commit.Marker{Cursor: uint64(stored)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 3 {
		commit(20)
		i := w.Leader(t.Context(), w.JS, topology.OutcomesStream)
		w.Cut(i)
		commit(50)
		w.Heal(i)
		for healed, end := time.Now(), c.LastSeq(); time.Since(healed) < 3*time.Second; reads++ {
			if one, err := w.JS.Stream(t.Context(), topology.OutcomesStream); err == nil && one.CachedInfo().State.LastSeq < end {
				believed++ // by a caller that does not check which server answers
			}
			s, err := topology.State(t.Context(), w.JS, topology.OutcomesStream)
			if err != nil || s.Last < end {
				t.Fatalf("%s after it came back the stream ends at %d, not %d: %v", time.Since(healed), s.Last, end, err)
			}
			if out, err := w.Read(); err != nil || len(out) != stored {
				t.Fatalf("%s after it came back %d messages are read, not %d: %v", time.Since(healed), len(out), stored, err)
			}
		}
		w.AwaitReplicas()
	}
	t.Logf("%d reads; the old leader answered %d times", reads, believed)
}

// A read of a cluster whose selection ends long before the stream does, or is empty,
// ends: the copy that is read from reports that it has delivered it all.
func TestFaultClusterReadsToEnd(t *testing.T) {
	w := cluster.StartStreams(t)
	c := w.TakeOver("a")
	for n := range 300 {
		if n == 5 {
			if _, err := w.JS.Publish(t.Context(), "out.config.x", []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Commit(t.Context(), []commit.Message{cluster.Message("x")}, commit.Marker{Cursor: uint64(n)}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := w.JS.Stream(t.Context(), topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	count := func(filter string) (n int) {
		t.Helper()
		if err := stream.ReadStream(ctx, w.JS, topology.OutcomesStream, filter, 1, 0, func(jetstream.Msg, uint64) error { n++; return nil }); err != nil {
			t.Fatalf("%s: %v", filter, err)
		}
		return n
	}
	reads := func(filter string, want int) {
		t.Helper()
		if n := count(filter); n != want {
			t.Errorf("%s: %d messages, not %d", filter, n, want)
		}
	}
	for range 10 { // copies take turns
		reads("out.config.>", 1)
		reads("out.2.>", 0)
	}
	if err := s.Purge(t.Context(), jetstream.WithPurgeSubject("out.1.>")); err != nil {
		t.Fatal(err)
	}
	for purged := 0; purged < 10; purged++ { // a copy that is behind still has them
		if count("out.>") != 1 {
			purged = -1
		}
	}
	for range 10 {
		reads("out.>", 1)
		reads("out.1.>", 0)
	}
}
