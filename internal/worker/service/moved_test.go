package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/partition"
	"compactd/internal/worker/service"
)

// relay answers requests, and serves no partition of the log as it is now.
func relay(env *workertest.Env) *service.Service {
	env.T.Helper()
	ready := make(chan struct{})
	close(ready)
	return service.New(service.Config{
		Read: env.Conn, Commit: env.Conn, Answers: env.Conn, JS: env.JS, Publish: env.JS, Owner: "relay", Ready: ready,
		Partitions: partition.NewSet(env.JS, partition.Config{
			Read: env.Conn, Commit: env.Conn, Texts: env.Conn, Streams: env.Streams, Memory: 64 << 20, Compaction: env.Config, Limiter: limit.New(limit.Config{}),
		}),
	})
}

// moving names a session that goes to the child when a log of one partition grows.
func moving() events.Address {
	for i := 0; ; i++ {
		if a := (events.Address{Tenant: "default", Session: fmt.Sprint("s", i)}); events.PartitionOf(a, 2) == 1 {
			return a
		}
	}
}

// history is what an agent has after n syncs.
func history(n int) (out []codec.Raw) {
	for i := range n {
		out = append(out, codec.Raw(fmt.Sprintf(`{"role":%q,"content":"message %d"}`, [2]string{"user", "assistant"}[i%2], i)))
	}
	return out
}

// A worker that does not know that the log has grown finds a session where it has moved to, and syncs go on with its turns.
// The owner of the partition that it had refuses each request about it.
func TestMovedSession(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
	env.LeaseTTL, env.Ledgers = time.Second, t.TempDir()
	env.Run("a", observe.Listener{})
	a := moving()
	syncing, synced := relay(env), 0
	sync := func() {
		t.Helper()
		synced++
		var out *events.SyncResponse
		err := retry.Every(5*time.Millisecond).Do(brokertest.Within(t, time.Minute), nil, func() (err error) {
			out, err = syncing.Sync(t.Context(), &events.SyncRequest{About: a.About(), Messages: history(synced)})
			if err == nil && slices.ContainsFunc(out.Warnings, func(w events.SyncWarning) bool { return w.Code == events.CodeLate }) {
				err = service.ErrBusy // on a slow machine
			}
			return retry.When(err != nil && service.Refusal(err).Code == events.CodeUnavailable, err)
		})
		if err != nil || !out.Recorded || out.Session != "" || out.Turns != int64(synced) {
			t.Fatalf("sync %d: %+v, %v", synced, out, err)
		}
	}
	sync()
	stale, waiting, syncs := relay(env), relay(env), relay(env)
	if _, err := topology.Grow(t.Context(), env.JS); err != nil {
		t.Fatal(err)
	}
	for grown := false; !grown; {
		sync()
		streams, err := topology.Describe(t.Context(), env.JS)
		if err != nil {
			t.Fatal(err)
		}
		env.Streams = streams
		grown = len(streams.Partitions.Unsplit()) == 0 && streams.Partitions.Count() == 2
	}
	env.AwaitDecided()
	for _, o := range service.Operations() {
		if !strings.Contains(o.Path, "{session}") {
			continue
		}
		m, err := env.Conn.Request(events.OwnerSubject(0, o.Name), requestOf(o.Name, a), workertest.WaitLimit)
		if err != nil || m.Header.Get(micro.ErrorCodeHeader) != string(events.CodeWrongPartition) {
			t.Errorf("%s: %v %.300s, %v", o.Name, m.Header, m.Data, err)
		}
	}
	got, err := stale.Stats(t.Context(), &events.StatsRequest{About: a.About()})
	if err != nil || !got.Known || got.Turns != int64(synced) {
		t.Errorf("stats: %+v, %v", got, err)
	}
	syncing = syncs
	sync()
	read, err := waiting.Context(t.Context(), &events.ContextRequest{About: a.About(), Await: events.Await{Turn: int64(synced)}})
	if err != nil || !read.Known || len(read.Messages) != synced {
		t.Errorf("context: %+v, %v", read, err)
	}
}

// requestOf is a request about a session that its decoder takes.
func requestOf(operation string, a events.Address) []byte {
	more := map[string]string{
		"attach": `,"attachments":[{"name":"a.go","text":"package a"}]`, "outcome": `,"seq":1`, "recall": `,"turn":1`, "whatif": `,"set":[["target=0.5"]]`,
		"sync": `,"messages":[{"role":"user","content":"message 0"}]`, "preview": `,"policy":{}`,
	}[operation]
	return fmt.Appendf(nil, `{"v":1,"tenant":%q,"session":%q%s}`, a.Tenant, a.Session, more)
}
