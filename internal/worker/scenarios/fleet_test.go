package scenarios_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/redecide"
)

// Workers share the partitions, and hand them over when one joins or leaves. Together they
// publish the outcomes that follow from the log, each once.
func TestFleetSharesPartitions(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	first := env.StartReady("a", owners.Listener("a"))
	owners.Await(map[string]int{"a": 4})
	for n := 1; n <= 10; n++ {
		publishAll(env, 8, n)
	}
	second := env.Start("b", owners.Listener("b"))
	for n := 11; n <= 20; n++ {
		publishAll(env, 8, n)
	}
	<-second.Worker.Ready()
	owners.Await(map[string]int{"a": 2, "b": 2})
	for n := 21; n <= 30; n++ {
		publishAll(env, 8, n)
	}
	first.Stop()
	owners.Await(map[string]int{"a": 0, "b": 4})
	publishAll(env, 8, 31)
	env.AwaitDecided()
	second.Stop()
	for _, e := range owners.Released["a"] {
		if e.Err != nil {
			t.Errorf("partition %d was handed over with %v", e.Partition, e.Err)
		}
	}
	for _, e := range owners.Acquired["b"] {
		if e.Epoch != 2 {
			t.Errorf("partition %d has epoch %d after one hand-over", e.Partition, e.Epoch)
		}
	}
	env.WantRedecided()
}

// A log grows while turns are published: every partition is split, the workers share twice as many, and together they
// publish the outcomes that follow from the log, each once. Another growth begins where this one ended.
func TestFleetGrows(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	env.LeaseTTL, env.Ledgers = time.Second, t.TempDir()
	first := env.StartReady("a", owners.Listener("a"))
	env.Ledgers = t.TempDir()
	second := env.StartReady("b", owners.Listener("b"))
	owners.Await(map[string]int{"a": 2, "b": 2})
	n := 0
	for partitions := 8; partitions <= 16; partitions *= 2 {
		if _, err := topology.Grow(t.Context(), env.JS); err != nil {
			t.Fatal(err)
		}
		for complete := false; !complete; {
			n++
			publishAll(env, 30, n)
			streams, err := topology.Describe(t.Context(), env.JS)
			if err != nil {
				t.Fatal(err)
			}
			complete = streams.Partitions.Count() == partitions && len(streams.Partitions.Unsplit()) == 0
			env.Streams = streams
			if r := env.Replay(redecide.Span{}); !r.Equal() { // also of a growth that SESSIONS has in part
				t.Errorf("%s: %+v", streams.Partitions, r)
			}
		}
		owners.Await(map[string]int{"a": partitions / 2, "b": partitions / 2})
	}
	n++
	publishAll(env, 30, n)
	env.AwaitDecided()
	for _, w := range []*workertest.Running{first, second} {
		w.Stop()
	}
	env.WantRedecided()
	all := env.Replay(redecide.Span{})
	if want := (&redecide.Replayed{
		Events: int(env.State(topology.LogStream).Last), Sessions: 30, Outcomes: len(env.Redecided()), Configs: 1, Differences: []redecide.Difference{},
	}); !cmp.Equal(want, all) {
		t.Errorf("replayed from zero (-want +got):\n%s", cmp.Diff(want, all))
	}
	read := 0
	err := redecide.Recordings(t.Context(), env.Conn, redecide.Span{}, nil, func(r redecide.Recording, err error) error {
		one := env.Replay(redecide.Span{Tenant: r.Address.Tenant, Session: r.Address.Session})
		if err != nil || !one.Equal() || one.Events != len(r.Events) || one.Outcomes == 0 {
			t.Errorf("%s: %d events are read, %+v: %v", r.Address, len(r.Events), one, err)
		}
		read += len(r.Events)
		return nil
	})
	if err != nil || read != all.Events {
		t.Errorf("%d of %d events are read: %v", read, all.Events, err)
	}
	t.Logf("%d turns of each session, %d outcomes: %s", n, len(env.Redecided()), env.Streams.Partitions)
}

// Workers join and leave while turns are published: every outcome is published, and none twice.
func TestManyTakeOvers(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond) // a backlog would make every stop a long one
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				publishAll(env, 6, n)
			}
		}
	})
	var workers []*workertest.Running
	for i := range 6 {
		name := fmt.Sprintf("w%d", i)
		committed := make(chan struct{}, 1)
		workers = append(workers, env.Start(name, observe.Tee(owners.Listener(name), observe.Listener{Committed: func(c observe.Committed) {
			if c.Outcomes > 0 {
				select {
				case committed <- struct{}{}:
				default:
				}
			}
		}})))
		select {
		case <-committed:
		case err := <-workers[i].Done:
			t.Fatalf("worker %d ended: %v", i, err)
		case <-time.After(workertest.WaitLimit):
			t.Fatalf("worker %d commits no outcome", i)
		}
		if i%2 == 1 {
			workers[i-1].Stop()
		}
	}
	owners.Until("4 partitions of 3 workers", func() bool {
		return len(owners.Held["w1"])+len(owners.Held["w3"])+len(owners.Held["w5"]) == 4 && max(len(owners.Held["w1"]), len(owners.Held["w3"]), len(owners.Held["w5"])) == 2
	})
	close(stop)
	wg.Wait()
	env.AwaitDecided()
	for _, i := range []int{1, 3, 5} {
		workers[i].Stop()
	}
	env.WantRedecided()
}

// A worker that is fenced while it holds the lease drops its state in memory, and takes the
// partition over again.
func TestFencedGoesOn(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	stop := env.Run("a", owners.Listener("a"))
	for n := 1; n <= 10; n++ {
		publishAll(env, 8, n)
	}
	for p := range env.Streams.Partitions.Count() {
		if _, _, err := commit.TakeOver(t.Context(), env.Conn, commit.Claim{Partition: p, Owner: "thief", Config: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	for n := 11; n <= 20; n++ {
		publishAll(env, 8, n)
	}
	owners.Until("epoch 3 everywhere", func() bool { return len(owners.Acquired["a"]) == 8 })
	env.AwaitDecided()
	stop()
	for _, e := range owners.Released["a"][:4] {
		if !errors.Is(e.Err, commit.ErrFenced) {
			t.Errorf("partition %d was released with %v, not ErrFenced", e.Partition, e.Err)
		}
	}
	env.WantRedecided()
}

// A ledger file from before another worker decided is brought up to date with the outcomes of
// that worker, and is not quarantined.
func TestStaleLedgers(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	dirs, n := map[string]string{"a": t.TempDir(), "b": t.TempDir()}, 0
	start := func(name string) *workertest.Running {
		env.Ledgers, env.CheckpointEvery = dirs[name], 50*time.Millisecond
		return env.Start(name, owners.Listener(name))
	}
	turns := func() {
		for range 8 {
			n++
			publishAll(env, 8, n)
		}
		env.AwaitDecided()
	}
	first := start("a")
	owners.Await(map[string]int{"a": 4})
	turns()
	for round := range 3 { // b takes two, decides, and gives them back
		second := start("b")
		owners.Await(map[string]int{"a": 2, "b": 2})
		turns()
		before := 0
		owners.Record(func() { before = len(owners.Acquired["a"]) })
		second.Stop()
		owners.Await(map[string]int{"a": 4})
		owners.Mu.Lock()
		for _, e := range owners.Acquired["a"][before:] {
			if e.Replayed == 0 || e.Replayed >= n*8 {
				t.Errorf("round %d: %d of %d events were replayed in partition %d; want those that b decided", round, e.Replayed, n*8, e.Partition)
			}
		}
		owners.Mu.Unlock()
		turns()
	}
	first.Stop()
	if len(owners.Quarantined) > 0 {
		t.Errorf("files were quarantined: %v", owners.Quarantined)
	}
	env.WantRedecided()
}

// A worker that crashed leaves its leases behind; one that starts on the same directory has
// them at once, however long they last.
func TestRestartHasItsLeases(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	env.Ledgers, env.LeaseTTL = t.TempDir(), time.Hour
	env.Run("a", owners.Listener("a"))()
	id, err := os.ReadFile(filepath.Join(env.Ledgers, "worker.id"))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSpace(string(id))
	if err := coord.NewMembers(env.JS, time.Hour).Heartbeat(t.Context(), coord.Member{Name: name, Owner: "crashed"}); err != nil {
		t.Fatal(err)
	}
	for p := range env.Streams.Partitions.Count() {
		if _, err := coord.NewLeases(env.JS, time.Hour).Acquire(t.Context(), p, coord.Holder{Member: name, Owner: "crashed"}); err != nil {
			t.Fatal(err)
		}
	}
	env.Run("b", owners.Listener("b"))
	owners.Await(map[string]int{"b": 4})
}

// Leases and membership of a crashed worker expire, and another worker takes over.
func TestCrashedOwner(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	env.LeaseTTL = time.Second
	if err := coord.NewMembers(env.JS, time.Second).Heartbeat(t.Context(), coord.Member{Name: "crashed", Owner: "crashed"}); err != nil {
		t.Fatal(err)
	}
	for p := range env.Streams.Partitions.Count() {
		if _, err := coord.NewLeases(env.JS, time.Second).Acquire(t.Context(), p, coord.Holder{Member: "crashed", Owner: "crashed"}); err != nil {
			t.Fatal(err)
		}
	}
	env.Run("a", owners.Listener("a"))
	owners.Await(map[string]int{"a": 4})
}

// Of two workers on one directory the second does not start. Of two with a copy of one name
// one ends, and its error gives the reason.
func TestOneNameOneWorker(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	env.Ledgers = t.TempDir()
	first := env.StartReady("a", owners.Listener("a"))
	wantWorkerRefused(env, "in use")
	id, err := os.ReadFile(filepath.Join(env.Ledgers, "worker.id"))
	if err != nil {
		t.Fatal(err)
	}
	env.Ledgers, env.LeaseTTL = t.TempDir(), time.Second
	if err := os.WriteFile(filepath.Join(env.Ledgers, "worker.id"), id, 0o600); err != nil {
		t.Fatal(err)
	}
	second := env.Start("b", owners.Listener("b"))
	var ended error
	select {
	case ended = <-first.Done:
	case ended = <-second.Done:
	case <-time.After(workertest.WaitLimit):
		t.Fatal("both workers continue")
	}
	if ended == nil || !strings.Contains(ended.Error(), "copy") {
		t.Errorf("one of the two ended with %v", ended)
	}
	_, _ = first.End(), second.End() // the other one may have ended so too
	figures.Print(t, "P6", "second_refused", one(!t.Failed()))
}

// A request reaches the worker that serves the session, whichever worker receives it.
func TestRequestAnyWorker(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	env.Run("a", owners.Listener("a"))
	env.Run("b", owners.Listener("b"))
	owners.Await(map[string]int{"a": 2, "b": 2})
	const sessions = 16
	publishAll(env, sessions, 1)
	env.AwaitDecided()
	healths := map[string]int64{}
	for range 20 { // a queue group: either worker may receive it
		for s := range sessions {
			session := fmt.Sprintf("s%d", s)
			if c := env.Context(session, 1); !c.Known || c.Through.Turn != 1 || len(c.Messages) == 0 {
				t.Fatalf("%s: %+v", session, c)
			}
			var st events.StatsResponse
			if e := env.Request(events.SubjectStats, fmt.Sprintf(`{"session":%q}`, session), &st); e != nil || !st.Known || st.Turns != 1 {
				t.Fatalf("%s: %+v, %v", session, st, e)
			}
		}
		var h events.HealthResponse
		if e := env.Request(events.SubjectHealth, `{}`, &h); e != nil || h.Status != events.HealthOK || h.Served != h.Partitions {
			t.Fatalf("%+v, %v", h, e)
		}
		healths[h.Owner] = h.Partitions
	}
	if len(healths) != 2 || healths["a"] != 2 || healths["b"] != 2 {
		t.Errorf("shares are %v", healths)
	}
	var st events.StatsResponse
	if e := env.Request(events.SubjectStats, `{"session":"s1","model":7}`, &st); e == nil || e.Code == events.CodeUnavailable {
		t.Errorf("an invalid request was answered with %+v, %v", st, e)
	}
}

// The others take over the partitions of a worker that stops gracefully without waiting for its
// leases to expire, which here takes longer than the test. The time is printed; on an idle
// machine p50 is below 100 ms.
func TestLeaveIsQuick(t *testing.T) {
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	env.LeaseTTL = time.Hour
	stay := env.Start("a", owners.Listener("a"))
	owners.Await(map[string]int{"a": 4})
	var took []time.Duration
	for n := range 10 {
		env.Ledgers = t.TempDir()
		name := fmt.Sprintf("b%d", n)
		leaver := env.Start(name, owners.Listener(name))
		owners.Await(map[string]int{"a": 2, name: 2})
		publishAll(env, 8, n+1)
		env.AwaitDecided()
		began := time.Now()
		go leaver.Cancel()
		owners.Until("one of two partitions", func() bool { return len(owners.Held["a"]) >= 3 })
		took = append(took, time.Since(began))
		owners.Until("both partitions", func() bool { return len(owners.Held["a"]) == 4 })
		took = append(took, time.Since(began))
		if err := <-leaver.Done; err != nil {
			t.Fatal(err)
		}
	}
	stay.Stop()
	slices.Sort(took)
	p50 := took[len(took)/2]
	fmt.Printf("takeover_ms after a graceful leave, in one process: p50 %.1f, p99 %.1f (%d partitions)\n",
		p50.Seconds()*1000, took[len(took)-1].Seconds()*1000, len(took))
	env.WantRedecided()
}

// A ledger file that is older than the log is still used: events that are missing between the
// two do not make it a file of another log.
func TestStaleBeyondTheLog(t *testing.T) {
	t.Parallel()
	env, owners := workertest.New(t, t.TempDir()), workertest.NewOwnership(t)
	dir := t.TempDir()
	for i, name := range []string{"a", "b", "c"} {
		env.Ledgers = dir
		if name == "b" {
			env.Ledgers = ""
		}
		stop := env.Run(name, owners.Listener(name))
		for n := range 5 {
			publishAll(env, 8, 5*i+n+1)
		}
		env.AwaitDecided()
		stop()
		if name != "b" {
			continue
		}
		s, err := env.JS.Stream(t.Context(), topology.LogStream)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Purge(t.Context(), jetstream.WithPurgeSequence(61)); err != nil { // 20 of 40 events that b decided
			t.Fatal(err)
		}
	}
	if len(owners.Quarantined) > 0 || len(owners.Acquired["c"]) != 4 {
		t.Errorf("quarantined %v; acquired %v", owners.Quarantined, owners.Acquired["c"])
	}
}
