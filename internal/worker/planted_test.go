package worker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/plant"
	"compactd/internal/worker"
)

// Empty messages that look like the server's own are rejected like any malformed event, under
// their sequence, and stop nobody: hostile actors, control-message look-alikes.
func TestControlLookalikes(t *testing.T) {
	t.Parallel()
	w := openWorld(t, embedded.Config{Dir: t.TempDir(), Listen: "-1"}, topology.Config{Partitions: 1})
	stop := w.run("w", worker.Listener{Fetched: func(e worker.Fetched) { t.Errorf("event %d was not read at once: %v", e.Seq, e.Err) }})
	c, err := plant.Dial(w.server.ClientURL(), nil)
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
		w.publish(events.KindTurn, "good", turn(good))
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := w.run("next", worker.Listener{})(); err != nil { // reads what was told
		t.Error(err)
	}
	count := len(planted)
	for subject, all := range w.stored() {
		for _, o := range all {
			var r events.Rejected
			if !strings.Contains(subject, ".rejected.") || events.Unmarshal([]byte(o), &r) != nil {
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
	w.wantAsLogSays()
	figures.Print(t, "P20", "planted", count, "unrejected", len(planted))
}

// A turn with headers that look like a server's answer, last in its partition, keeps no worker
// from opening it, whether it has files or not: hostile actors, planted server headers.
func TestPlantedHeadersLastInPartition(t *testing.T) {
	t.Parallel()
	w := openWorld(t, embedded.Config{Dir: t.TempDir(), Listen: "-1"}, topology.Config{Partitions: 1})
	w.ledgers = t.TempDir()
	c, err := plant.Dial(w.server.ClientURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, b := range plant.Answers() {
		stop := w.run(fmt.Sprintf("w%d", i), worker.Listener{
			PartitionFailed: func(e worker.PartitionFailed) { t.Errorf("before %s: %v", b.Name, e.Err) },
			PartitionReleased: func(e worker.PartitionReleased) {
				if e.Err != nil {
					t.Errorf("before %s: %v", b.Name, e.Err)
				}
			},
		})
		w.publish(events.KindTurn, "good", turn(i+1))
		if _, err := c.Publish("session.turn.default.evil", b.Text, string(turn(i+1))); err != nil && !errors.Is(err, plant.ErrDuplicate) {
			t.Fatalf("%s: %v", b.Name, err)
		}
		w.settle()
		if err := stop(); err != nil {
			t.Fatalf("after %s: %v", b.Name, err)
		}
		if i%2 == 1 {
			w.ledgers = t.TempDir()
		}
	}
	w.wantAsLogSays()
	figures.Print(t, "P20", "last_in_partition", len(plant.Answers()), "failed_opens", one(t.Failed()))
}

// A partition that cannot be opened is tried again and reported, and ends neither the worker
// nor the other partitions. It is served once nothing is wrong with it.
func TestPartitionFailsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	const bad = 2
	ack, err := w.js.Publish(t.Context(), events.Outcome(bad, events.KindBudget, events.Address{Tenant: "t", Session: "s"}), []byte("{}"))
	if err != nil { // an outcome that no worker wrote
		t.Fatal(err)
	}
	m := newMonitor(t, worker.MonitorConfig{})
	failed, acquired := make(chan worker.PartitionFailed, 1000), make(chan int, 100)
	r := w.prepare("", worker.Tee(m.Listener(), worker.Listener{
		PartitionFailed:   func(e worker.PartitionFailed) { failed <- e },
		PartitionAcquired: func(e worker.PartitionAcquired) { acquired <- e.Partition },
	}))
	if err := m.Watch(r.worker, nil); err != nil {
		t.Fatal(err)
	}
	r.begin()
	for range 3 {
		if e := <-failed; e.Partition != bad || !strings.Contains(e.Err.Error(), "has no marker") {
			t.Errorf("partition %d failed with %v", e.Partition, e.Err)
		}
	}
	for range w.streams.Partitions - 1 {
		if p := <-acquired; p == bad {
			t.Errorf("partition %d is served", p)
		}
	}
	for i := range 8 {
		w.publish(events.KindTurn, fmt.Sprintf("s%d", i), turn(1))
	}
	for p := range w.streams.Partitions {
		if p != bad {
			w.awaitDecided(p)
		}
	}
	if _, got := readyz(t, m); got.Served != w.streams.Partitions-1 || !slices.ContainsFunc(got.Problems, func(p worker.Problem) bool {
		return p.Check == "partitions" && strings.Contains(p.Message, fmt.Sprintf("partition %d ended with an error and is opened again", bad))
	}) {
		t.Errorf("%+v", got)
	}
	if _, body := get(t, m, "/metrics", "", ""); !strings.Contains(body, "\ncompactd_partitions_failed 1\n") {
		t.Error("compactd_partitions_failed is not 1")
	}

	out, err := w.js.Stream(t.Context(), topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.DeleteMsg(t.Context(), ack.Sequence); err != nil {
		t.Fatal(err)
	}
	if p := <-acquired; p != bad {
		t.Errorf("partition %d is served, not %d", p, bad)
	}
	w.settle()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	figures.Print(t, "P20", "partitions", w.streams.Partitions, "failed", 1, "others_stopped", 0, "exits", one(t.Failed()))
}

// awaitDecided waits until all events of a partition are decided, and their outcomes stored.
func (w *world) awaitDecided(partition int) {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; {
		m, err := commit.LastMarker(w.t.Context(), w.conn, partition)
		if err != nil {
			w.t.Fatal(err)
		}
		oldest, err := stream.Oldest(w.t.Context(), w.js, partition, m.Cursor)
		if err != nil {
			w.t.Fatal(err)
		}
		if oldest.IsZero() {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("partition %d is at %d, and the event of %s waits", partition, m.Cursor, oldest)
		}
		pause(w.t, 10*time.Millisecond)
	}
}
