package worker_test

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

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/coord"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/worker"
)

// roll says which partitions each worker of a test serves.
type roll struct {
	t    *testing.T
	more chan struct{}

	mu       sync.Mutex // guards the fields below
	held     map[string]map[int]bool
	acquired map[string][]worker.PartitionAcquired
	lost     map[string][]worker.PartitionReleased
	aside    []error
}

func newRoll(t *testing.T) *roll {
	return &roll{
		t: t, more: make(chan struct{}, 1), held: map[string]map[int]bool{},
		acquired: map[string][]worker.PartitionAcquired{}, lost: map[string][]worker.PartitionReleased{},
	}
}

// listener notes what the worker of a name says.
func (r *roll) listener(name string) worker.Listener {
	r.note(func() { r.held[name] = map[int]bool{} })
	return worker.Listener{
		PartitionAcquired: func(e worker.PartitionAcquired) {
			r.note(func() { r.held[name][e.Partition], r.acquired[name] = true, append(r.acquired[name], e) })
		},
		PartitionFailed: func(e worker.PartitionFailed) {
			r.note(func() {
				delete(r.held[name], e.Partition)
				r.lost[name] = append(r.lost[name], worker.PartitionReleased{Partition: e.Partition, Err: e.Err})
			})
		},
		PartitionReleased: func(e worker.PartitionReleased) {
			r.note(func() { delete(r.held[name], e.Partition); r.lost[name] = append(r.lost[name], e) })
		},
		Quarantined: func(e worker.Quarantined) { r.note(func() { r.aside = append(r.aside, e.Reason) }) },
	}
}

func (r *roll) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// await waits until every worker serves as many partitions as want says.
func (r *roll) await(want map[string]int) {
	r.t.Helper()
	r.until(fmt.Sprint(want), func() bool {
		for name, n := range want {
			if len(r.held[name]) != n {
				return false
			}
		}
		return true
	})
}

// both lists the partitions that two workers hold: those of a hand-over that goes on.
func (r *roll) both(one, other string) (out []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.held[one] {
		if r.held[other][id] {
			out = append(out, id)
		}
	}
	return out
}

// until waits until ok, which is called under the lock.
func (r *roll) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.After(waitLimit)
	for {
		r.mu.Lock()
		done, held := ok(), fmt.Sprint(r.held)
		r.mu.Unlock()
		if done {
			return
		}
		select {
		case <-r.more:
		case <-deadline:
			r.t.Fatalf("served are %s; waiting for %s", held, what)
		}
	}
}

// Workers share the partitions, and hand them over when one joins or leaves; what
// they told together is what the log says, once.
func TestShare(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, t.TempDir()), newRoll(t)
	first := w.start("a", r.listener("a"))
	<-first.worker.Ready()
	r.await(map[string]int{"a": 4})
	for n := 1; n <= 10; n++ {
		w.publishAll(8, n)
	}
	second := w.start("b", r.listener("b"))
	for n := 11; n <= 20; n++ {
		w.publishAll(8, n)
	}
	<-second.worker.Ready()
	r.await(map[string]int{"a": 2, "b": 2})
	for n := 21; n <= 30; n++ {
		w.publishAll(8, n)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	r.await(map[string]int{"a": 0, "b": 4})
	w.publishAll(8, 31)
	w.settle()
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.lost["a"] {
		if e.Err != nil {
			t.Errorf("partition %d was handed over with %v", e.Partition, e.Err)
		}
	}
	for _, e := range r.acquired["b"] {
		if e.Epoch != 2 {
			t.Errorf("partition %d has epoch %d after one hand-over", e.Partition, e.Epoch)
		}
	}
	w.wantAsLogSays()
}

// Many workers come and go in the middle of a stream of turns: nothing is told
// twice and nothing is left out.
func TestManyTakeOvers(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, t.TempDir()), newRoll(t)
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
				w.publishAll(6, n)
			}
		}
	})
	var workers []*running
	for i := range 6 {
		name := fmt.Sprintf("w%d", i)
		told := make(chan struct{}, 1)
		workers = append(workers, w.start(name, worker.Tee(r.listener(name), worker.Listener{Committed: func(c worker.Committed) {
			if c.Outcomes > 0 {
				select {
				case told <- struct{}{}:
				default:
				}
			}
		}})))
		select {
		case <-told:
		case err := <-workers[i].done:
			t.Fatalf("worker %d ended: %v", i, err)
		case <-time.After(waitLimit):
			t.Fatalf("worker %d tells nothing", i)
		}
		if i%2 == 1 {
			if err := workers[i-1].stop(); err != nil {
				t.Fatalf("worker %d ended with %v", i-1, err)
			}
		}
	}
	r.until("4 partitions of 3 workers", func() bool {
		return len(r.held["w1"])+len(r.held["w3"])+len(r.held["w5"]) == 4 && max(len(r.held["w1"]), len(r.held["w3"]), len(r.held["w5"])) == 2
	})
	close(stop)
	wg.Wait()
	w.settle()
	for _, i := range []int{1, 3, 5} {
		if err := workers[i].stop(); err != nil {
			t.Errorf("worker %d ended with %v", i, err)
		}
	}
	w.wantAsLogSays()
}

// A worker whose partition is taken over behind its back drops what it has in
// memory; as long as it has the lease it takes the partition back.
func TestFencedGoesOn(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, t.TempDir()), newRoll(t)
	stop := w.run("a", r.listener("a"))
	for n := 1; n <= 10; n++ {
		w.publishAll(8, n)
	}
	for p := range w.streams.Partitions {
		if _, _, err := commit.TakeOver(t.Context(), w.conn, commit.Claim{Partition: p, Owner: "thief", Config: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	for n := 11; n <= 20; n++ {
		w.publishAll(8, n)
	}
	r.until("epoch 3 everywhere", func() bool { return len(r.acquired["a"]) == 8 })
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.lost["a"][:4] {
		if !errors.Is(e.Err, commit.ErrFenced) {
			t.Errorf("partition %d was lost with %v, not ErrFenced", e.Partition, e.Err)
		}
	}
	w.wantAsLogSays()
}

// A ledger file that has lain while another worker decided is caught up with what
// that one told; it is not set aside.
func TestStaleLedgers(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, t.TempDir()), newRoll(t)
	dirs, n := map[string]string{"a": t.TempDir(), "b": t.TempDir()}, 0
	start := func(name string) *running {
		w.ledgers, w.checkpointEvery = dirs[name], 50*time.Millisecond
		return w.start(name, r.listener(name))
	}
	turns := func() {
		for range 8 {
			n++
			w.publishAll(8, n)
		}
		w.settle()
	}
	first := start("a")
	r.await(map[string]int{"a": 4})
	turns()
	for round := range 3 { // b takes two, decides, and gives them back
		second := start("b")
		r.await(map[string]int{"a": 2, "b": 2})
		turns()
		before := 0
		r.note(func() { before = len(r.acquired["a"]) })
		if err := second.stop(); err != nil {
			t.Fatal(err)
		}
		r.await(map[string]int{"a": 4})
		r.mu.Lock()
		for _, e := range r.acquired["a"][before:] {
			if e.Replayed == 0 || e.Replayed >= n*8 {
				t.Errorf("round %d: %d of %d events were replayed in partition %d; want those that b decided", round, e.Replayed, n*8, e.Partition)
			}
		}
		r.mu.Unlock()
		turns()
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	if len(r.aside) > 0 {
		t.Errorf("files were set aside: %v", r.aside)
	}
	w.wantAsLogSays()
}

// A worker that died leaves its leases behind; one that starts on the same folder
// has them at once, however long they last.
func TestRestartNeedNotWait(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, t.TempDir()), newRoll(t)
	w.ledgers, w.leaseTTL = t.TempDir(), time.Hour
	if err := w.run("a", r.listener("a"))(); err != nil {
		t.Fatal(err)
	}
	id, err := os.ReadFile(filepath.Join(w.ledgers, "worker.id"))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSpace(string(id))
	if err := coord.NewMembers(w.js, time.Hour).Heartbeat(t.Context(), coord.Member{Name: name, Owner: "dead"}); err != nil {
		t.Fatal(err)
	}
	for p := range w.streams.Partitions {
		if _, err := coord.NewLeases(w.js, time.Hour).Acquire(t.Context(), p, coord.Holder{Member: name, Owner: "dead"}); err != nil {
			t.Fatal(err)
		}
	}
	stop := w.run("b", r.listener("b"))
	r.await(map[string]int{"b": 4})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// Leases and membership of a worker that is gone without a word end by themselves,
// and another one goes on.
func TestDeadOwner(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, t.TempDir()), newRoll(t)
	w.leaseTTL = time.Second
	if err := coord.NewMembers(w.js, time.Second).Heartbeat(t.Context(), coord.Member{Name: "dead", Owner: "dead"}); err != nil {
		t.Fatal(err)
	}
	for p := range w.streams.Partitions {
		if _, err := coord.NewLeases(w.js, time.Second).Acquire(t.Context(), p, coord.Holder{Member: "dead", Owner: "dead"}); err != nil {
			t.Fatal(err)
		}
	}
	stop := w.run("a", r.listener("a"))
	r.await(map[string]int{"a": 4})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// Two workers on one folder: the second one does not start. Two with a copy of one
// name: one of them ends and says why.
func TestOneNameOneWorker(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, t.TempDir()), newRoll(t)
	w.ledgers = t.TempDir()
	first := w.start("a", r.listener("a"))
	<-first.worker.Ready()
	w.wantRefused("in use")
	id, err := os.ReadFile(filepath.Join(w.ledgers, "worker.id"))
	if err != nil {
		t.Fatal(err)
	}
	w.ledgers, w.leaseTTL = t.TempDir(), time.Second
	if err := os.WriteFile(filepath.Join(w.ledgers, "worker.id"), id, 0o600); err != nil {
		t.Fatal(err)
	}
	second := w.start("b", r.listener("b"))
	var ended error
	select {
	case ended = <-first.done:
	case ended = <-second.done:
	case <-time.After(waitLimit):
		t.Fatal("both go on")
	}
	if ended == nil || !strings.Contains(ended.Error(), "copy") {
		t.Errorf("one of the two ended with %v", ended)
	}
	_, _ = first.stop(), second.stop() // the other one may have ended so too
	figures.Print(t, "P6", "second_refused", one(!t.Failed()))
}

// A question reaches the worker that serves the session, whichever is asked.
func TestAskAnyWorker(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, t.TempDir()), newRoll(t)
	stopA := w.run("a", r.listener("a"))
	stopB := w.run("b", r.listener("b"))
	r.await(map[string]int{"a": 2, "b": 2})
	const sessions = 16
	w.publishAll(sessions, 1)
	w.settle()
	healths := map[string]int64{}
	for range 20 { // a queue group: either may be asked
		for s := range sessions {
			session := fmt.Sprintf("s%d", s)
			if c := w.context(session, 1); !c.Known || c.Through.Turn != 1 || len(c.Messages) == 0 {
				t.Fatalf("%s: %+v", session, c)
			}
			var st events.StatsResponse
			if e := w.request(events.SubjectStats, fmt.Sprintf(`{"session":%q}`, session), &st); e != nil || !st.Known || st.Turns != 1 {
				t.Fatalf("%s: %+v, %v", session, st, e)
			}
		}
		var h events.HealthResponse
		if e := w.request(events.SubjectHealth, `{}`, &h); e != nil || h.Status != events.HealthOK || h.Served != h.Partitions {
			t.Fatalf("%+v, %v", h, e)
		}
		healths[h.Owner] = h.Partitions
	}
	if len(healths) != 2 || healths["a"] != 2 || healths["b"] != 2 {
		t.Errorf("shares are %v", healths)
	}
	var st events.StatsResponse
	if e := w.request(events.SubjectStats, `{"session":"s1","model":7}`, &st); e == nil || e.Code == events.CodeUnavailable {
		t.Errorf("a bad question was answered with %+v, %v", st, e)
	}
	if err := errors.Join(stopA(), stopB()); err != nil {
		t.Fatal(err)
	}
}

// A worker that leaves in good order is followed by the others within a moment: they
// wait for no lease to end, which here takes longer than the test. The figure is printed;
// on an idle machine p50 is below 100 ms.
func TestLeaveIsQuick(t *testing.T) {
	w, r := newWorld(t, t.TempDir()), newRoll(t)
	w.leaseTTL = time.Hour
	stay := w.start("a", r.listener("a"))
	r.await(map[string]int{"a": 4})
	var took []time.Duration
	for n := range 10 {
		w.ledgers = t.TempDir()
		name := fmt.Sprintf("b%d", n)
		leaver := w.start(name, r.listener(name))
		r.await(map[string]int{"a": 2, name: 2})
		w.publishAll(8, n+1)
		w.settle()
		began := time.Now()
		go leaver.cancel()
		r.until("one of two partitions", func() bool { return len(r.held["a"]) >= 3 })
		took = append(took, time.Since(began))
		r.until("both partitions", func() bool { return len(r.held["a"]) == 4 })
		took = append(took, time.Since(began))
		if err := <-leaver.done; err != nil {
			t.Fatal(err)
		}
	}
	if err := stay.stop(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(took)
	p50 := took[len(took)/2]
	fmt.Printf("takeover_ms after a graceful leave, in one process: p50 %.1f, p99 %.1f (%d partitions)\n",
		p50.Seconds()*1000, took[len(took)-1].Seconds()*1000, len(took))
	w.wantAsLogSays()
}

// A ledger file that lay for longer than the log keeps turns is still of use: what
// is gone between the two is no sign of another log.
func TestStaleBeyondTheLog(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t, t.TempDir()), newRoll(t)
	dir := t.TempDir()
	for i, name := range []string{"a", "b", "c"} {
		w.ledgers = dir
		if name == "b" {
			w.ledgers = ""
		}
		stop := w.run(name, r.listener(name))
		for n := range 5 {
			w.publishAll(8, 5*i+n+1)
		}
		w.settle()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if name != "b" {
			continue
		}
		s, err := w.js.Stream(t.Context(), topology.LogStream)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Purge(t.Context(), jetstream.WithPurgeSequence(61)); err != nil { // 20 of 40 events that b decided
			t.Fatal(err)
		}
	}
	if len(r.aside) > 0 || len(r.acquired["c"]) != 4 {
		t.Errorf("set aside %v; acquired %v", r.aside, r.acquired["c"])
	}
}
