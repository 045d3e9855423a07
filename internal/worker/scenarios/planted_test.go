package scenarios_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/plant"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker"
	"compactd/internal/worker/observe"
)

// Hostile actors, control-message look-alikes: empty messages that look like the server's own
// are rejected like any malformed event, under their sequence, and stop no session.
func TestControlLookalikes(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), Listen: "-1"}, topology.Config{Partitions: 1})
	stop := env.Run("w", observe.Listener{Fetched: func(e observe.Fetched) { t.Errorf("event %d was not read at once: %v", e.Seq, e.Err) }})
	c, err := plant.Dial(env.Server.ClientURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	planted, good := map[uint64]string{}, 0
	for i, b := range plant.All() {
		seq, err := c.Publish(fmt.Sprintf("session.turn.default.evil%d", i%7), b.Text, "")
		if errors.Is(err, plant.ErrDuplicate) {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", b.Name, err)
		}
		planted[seq] = b.Name
		good++
		env.Publish(events.KindTurn, "good", workertest.Turn(good))
	}
	env.AwaitDecided()
	stop()
	env.Run("next", observe.Listener{})() // reads the outcomes
	count := len(planted)
	for subject, all := range env.Stored() {
		for _, o := range all {
			var r events.Rejected
			if !strings.Contains(subject, ".rejected.") || codec.Unmarshal([]byte(o), &r) != nil {
				continue
			}
			if planted[r.Seq] == "" || r.Code != events.CodeBadJSON {
				t.Errorf("%s: event %d (%s) is rejected with %s", subject, r.Seq, planted[r.Seq], r.Code)
			}
			delete(planted, r.Seq)
		}
	}
	for seq, name := range planted {
		t.Errorf("event %d (%s) was not rejected", seq, name)
	}
	env.WantRedecided()
	figures.Print(t, "P20", "planted", count, "unrejected", len(planted))
}

// Hostile actors, planted server headers: a worker opens a partition whose last turn has headers
// that look like a server's answer, with ledger files and without.
func TestPlantedHeadersLastInPartition(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), Listen: "-1"}, topology.Config{Partitions: 1})
	env.Ledgers = t.TempDir()
	c, err := plant.Dial(env.Server.ClientURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, b := range plant.Answers() {
		stop := env.Run(fmt.Sprintf("w%d", i), observe.Listener{
			PartitionFailed: func(e observe.PartitionFailed) { t.Errorf("before %s: %v", b.Name, e.Err) },
			PartitionReleased: func(e observe.PartitionReleased) {
				if e.Err != nil {
					t.Errorf("before %s: %v", b.Name, e.Err)
				}
			},
		})
		env.Publish(events.KindTurn, "good", workertest.Turn(i+1))
		if _, err := c.Publish("session.turn.default.evil", b.Text, string(workertest.Turn(i+1))); err != nil && !errors.Is(err, plant.ErrDuplicate) {
			t.Fatalf("%s: %v", b.Name, err)
		}
		env.AwaitDecided()
		stop()
		if i%2 == 1 {
			env.Ledgers = t.TempDir()
		}
	}
	env.WantRedecided()
	figures.Print(t, "P20", "last_in_partition", len(plant.Answers()), "failed_opens", one(t.Failed()))
}

// A partition that cannot be opened is tried again and reported, and stops neither the worker
// nor the other partitions. It is served once its cause is removed.
func TestPartitionFailsAlone(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	const bad = 2
	other, _, err := commit.TakeOver(t.Context(), env.Conn, commit.Claim{Partition: bad, Owner: "other", Config: env.Config.Hash(), LogCreated: env.Streams.Log.Created.UnixNano()})
	if err != nil {
		t.Fatal(err)
	}
	cause := env.Publish(events.KindTurn, sessionIn(bad, env.Streams.Partitions.Count()), workertest.Turn(1))
	unknown := commit.Message{Subject: events.Outcome(bad, "unknown", events.Address{Tenant: "t", Session: "s"}), Data: []byte("{}")}
	marker := commit.Marker{Cursor: cause, Config: env.Config.Hash(), LogCreated: env.Streams.Log.Created.UnixNano()}
	if err := other.Commit(t.Context(), []commit.Message{unknown}, marker); err != nil { // of a version that this one does not know
		t.Fatal(err)
	}
	m := workertest.NewMonitor(t, worker.MonitorConfig{})
	failed, acquired := make(chan observe.PartitionFailed, 1000), make(chan int, 100)
	r := env.Prepare("", observe.Tee(m.Listener(), observe.Listener{
		PartitionFailed:   func(e observe.PartitionFailed) { failed <- e },
		PartitionAcquired: func(e observe.PartitionAcquired) { acquired <- e.Partition },
	}))
	if err := m.Watch(r.Worker, nil); err != nil {
		t.Fatal(err)
	}
	r.Begin()
	for range 3 {
		if e := <-failed; e.Partition != bad || !strings.Contains(e.Err.Error(), "unknown") {
			t.Errorf("partition %d failed with %v", e.Partition, e.Err)
		}
	}
	for range env.Streams.Partitions.Count() - 1 {
		if p := <-acquired; p == bad {
			t.Errorf("partition %d is served", p)
		}
	}
	for i := range 8 {
		env.Publish(events.KindTurn, fmt.Sprintf("s%d", i), workertest.Turn(1))
	}
	for p := range env.Streams.Partitions.Count() {
		if p != bad {
			awaitPartition(env, p)
		}
	}
	if _, got := workertest.Readyz(t, m); got.Served != env.Streams.Partitions.Count()-1 || !slices.ContainsFunc(got.Problems, func(p worker.Problem) bool {
		return p.Check == "partitions" && strings.Contains(p.Message, fmt.Sprintf("partition %d ended with an error and is opened again", bad))
	}) {
		t.Errorf("%+v", got)
	}
	if _, body := workertest.Get(t, m, "/metrics", "", ""); !strings.Contains(body, "\ncompactd_partitions_failed 1\n") {
		t.Error("compactd_partitions_failed is not 1")
	}

	out, err := env.JS.Stream(t.Context(), topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.DeleteMsg(t.Context(), other.LastSeq()); err != nil {
		t.Fatal(err)
	}
	if p := <-acquired; p != bad {
		t.Errorf("partition %d is served, not %d", p, bad)
	}
	env.AwaitDecided()
	r.Stop()
	figures.Print(t, "P20", "partitions", env.Streams.Partitions.Count(), "failed", 1, "others_stopped", 0, "exits", one(t.Failed()))
}

// sessionIn names a session of a partition.
func sessionIn(partition, partitions int) string {
	for n := 0; ; n++ {
		if name := fmt.Sprint("in", n); events.PartitionOf(events.Address{Tenant: "default", Session: name}, partitions) == partition {
			return name
		}
	}
}

// awaitPartition waits until all events of a partition are decided, and their outcomes stored.
func awaitPartition(env *workertest.Env, partition int) {
	env.T.Helper()
	workertest.Until(env.T, fmt.Sprintf("partition %d is decided", partition), func() bool {
		m, err := commit.LastMarker(env.T.Context(), env.Conn, partition)
		if err != nil {
			env.T.Fatal(err)
		}
		oldest, err := stream.Waiting(env.T.Context(), env.JS, []int{partition}, m.Cursor)
		if err != nil {
			env.T.Fatal(err)
		}
		return oldest.Seq == 0
	})
}
