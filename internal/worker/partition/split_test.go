package partition

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
)

// splitEnv is a server with a log of one partition whose growth to two has begun.
type splitEnv struct {
	*brokertest.Env
	dir string
}

func newSplitEnv(t *testing.T) *splitEnv {
	env := &splitEnv{brokertest.Open(t, t.TempDir(), topology.Config{Partitions: 1}), t.TempDir()}
	var err error
	if env.Streams.Partitions, err = env.Streams.Partitions.Grow(); err != nil {
		t.Fatal(err)
	}
	return env
}

// serve serves a partition, in a set of its own, until the test ends or stop is called.
func (env *splitEnv) serve(owner string, id int) (set *Set, stop func()) {
	env.T.Helper()
	set = NewSet(env.JS, Config{
		Read: env.NC, Commit: env.NC, Texts: env.NC, Streams: env.Streams, Compaction: simulatedConfigs()[1], Owner: owner,
		Dir: env.dir, CheckpointEvery: 10 * time.Millisecond, CheckpointEvents: 100, MarkerEvery: 10 * time.Millisecond,
		MaxLedgers: 100, Memory: 64 << 20, OutcomeBytes: -1, MaxAhead: 100, DrainTimeout: time.Minute, Limiter: limit.New(limit.Config{}),
	})
	ctx, cancel := context.WithCancel(env.T.Context())
	all, end := NewStopTime(ctx, time.Minute)
	served, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- set.Serve(ctx, all, id, func(observe.PartitionAcquired) { close(served) }, func() {})
	}()
	stop = sync.OnceFunc(func() {
		defer end()
		cancel()
		if err := <-ended; err != nil {
			env.T.Error(err)
		}
	})
	env.T.Cleanup(stop)
	select {
	case <-served:
	case err := <-ended:
		env.T.Fatalf("partition %d is not served: %v", id, err)
	}
	return set, stop
}

// eventually waits until something is so.
func (env *splitEnv) eventually(what string, is func() (bool, error)) {
	env.T.Helper()
	if err := retry.Every(5*time.Millisecond).Until(brokertest.Within(env.T, time.Minute), is); err != nil {
		env.T.Fatalf("%s: %v", what, err)
	}
}

// turn publishes a turn of a session.
func (env *splitEnv) turn(session string, n int) uint64 {
	return env.Turn(session, fmt.Sprintf(`{"v":1,"turn":%d,"messages":[{"role":"user","content":"turn %[1]d"}]}`, n))
}

// turns is how many turns of a session a partition has, once it has decided an event.
func (env *splitEnv) turns(set *Set, id int, session string, seq uint64) (n int64) {
	env.T.Helper()
	env.eventually("decide", func() (bool, error) {
		at, err := set.At(id).Inspect(events.Address{Tenant: "t", Session: session}, func(l *compaction.Ledger) { n = l.LastTurn() })
		return uint64(at) >= seq, err
	})
	return n
}

// of names a session that a server has in a partition of two.
func of(p int) string {
	for i := 0; ; i++ {
		if a := (events.Address{Tenant: "t", Session: fmt.Sprint("session-", i)}); events.PartitionOf(a, 2) == p {
			return a.Session
		}
	}
}

// A split is the marker of a commit of its own. Behind it the partition decides half of the sessions, the ledgers of
// the others leave memory and file, and the next owner learns it from the marker.
func TestSplit(t *testing.T) {
	t.Parallel()
	env := newSplitEnv(t)
	stays, moves := of(0), of(1)
	set, stop := env.serve("a", 0)
	env.turn(stays, 1)
	first := env.turn(moves, 1) + 1
	if n := env.turns(set, 0, moves, first-1); n != 1 {
		t.Fatalf("%d turns", n)
	}
	if err := set.At(0).Split(); err != nil {
		t.Fatal(err)
	}
	want := partitions.Split{Parent: 0, Child: 1, First: first}
	env.eventually("split", func() (bool, error) {
		m, err := commit.LastMarker(t.Context(), env.NC, 0)
		if m.Split == want && m.Cursor != first-1 {
			t.Fatalf("the split is at cursor %d, before %d", m.Cursor, first)
		}
		return m.Split == want, err
	})
	if err := set.At(0).Split(); err != nil {
		t.Fatal(err)
	}
	env.turn(moves, 2)
	last := env.turn(stays, 2)
	if n := env.turns(set, 0, stays, last); n != 2 {
		t.Errorf("%d turns of a session that stays", n)
	}
	if n := env.turns(set, 0, moves, last); n > 1 || set.Of(events.Address{Tenant: "t", Session: moves}) != 1 {
		t.Errorf("%d turns of a session of the child", n)
	}
	env.eventually("drop", func() (bool, error) {
		data, err := os.ReadFile(set.fileOptions(0).Path)
		return err == nil && !bytes.Contains(data, []byte(moves)), err
	})
	if found, err := set.At(0).Sessions("t", "", 10); err != nil || !cmp.Equal(found, []string{stays}) {
		t.Errorf("the partition has the sessions %v, %v", found, err)
	}
	stop()
	set, _ = env.serve("b", 0)
	if got := set.Table().Newest(0); got != want {
		t.Errorf("the next owner has the split %+v", got)
	}
	if m, err := commit.LastMarker(t.Context(), env.NC, 0); err != nil || m.Split != want || m.Owner != "b" {
		t.Errorf("its marker is %+v, %v", m, err)
	}
}
