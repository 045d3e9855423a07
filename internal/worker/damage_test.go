package worker_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/worker"
)

// live lets a worker decide on turns from ≤ n < to of some sessions, in a world
// on dir that is gone afterwards. Without an owner the turns are only published.
func live(t *testing.T, dir, owner string, from, to, flavour int) map[place][]outcome {
	t.Helper()
	w := newWorld(t, dir)
	defer w.stop()
	if owner != "" {
		defer func(stop func() error) {
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}(w.run(owner, worker.Listener{}))
	}
	for n := from; n < to; n++ {
		for s := range 4 {
			w.publish(events.KindTurn, "s"+string(rune('0'+s)), agentTurn(flavour+s, n))
		}
	}
	if owner != "" {
		w.settle()
	}
	return w.toldBySession()
}

// storeOf is where the server of a directory keeps a stream.
func storeOf(t *testing.T, dir, stream string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", stream))
	if err != nil || len(found) != 1 {
		t.Fatalf("folder of %s: %v %v", stream, found, err)
	}
	return found[0]
}

// replaceLog puts the log that another directory has into dir, as a power loss or a
// wrong backup would.
func replaceLog(t *testing.T, dir, from string) {
	t.Helper()
	to := storeOf(t, dir, topology.LogStream)
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(storeOf(t, from, topology.LogStream))); err != nil {
		t.Fatal(err)
	}
}

func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A truncated log goes on where it stops, with an interruption that reports
// so. What was published about the lost events stays published and plays no part any more,
// after this start and after the next.
//
// Agents that come back before the worker does take the sequences that were lost, up
// to the marker and beyond.
func TestLogLostItsEnd(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]int{"nobody came": 12, "some came": 13, "all came": 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLostEnd(t, early)
		})
	}
}

// testLostEnd has turns up to early, without 12, published before the worker is there.
func testLostEnd(t *testing.T, upTo int) {
	dir := t.TempDir()
	live(t, dir, "a", 1, 12, 20)
	early := newWorld(t, dir)
	end := early.streams.Log.Last
	early.stop()
	before := copyOf(t, dir)
	lost := live(t, dir, "b", 12, 24, 20)
	live(t, before, "", 13, upTo+1, 27)
	replaceLog(t, dir, before)

	w := newWorld(t, dir)
	said := make(chan worker.Retrying, 64)
	stop := w.run("c", worker.Listener{Retrying: func(i worker.Retrying) { said <- i }})
	told := false
	for range len(said) {
		i := <-said
		told = told || i.Step == "open" && strings.Contains(i.Err.Error(), "log truncated")
	}
	if !told {
		t.Error("the log was truncated, and no listener was called")
	}
	for n := 12; n < 18; n++ {
		for s := range 4 {
			w.publish(events.KindTurn, "s"+string(rune('0'+s)), agentTurn(27+s, n))
		}
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	w.wantBeside(lost, end)
	w.stop()

	after := live(t, dir, "d", 18, 30, 27)
	again := newWorld(t, dir)
	again.wantBeside(lost, end)
	if diff := cmp.Diff(after, again.toldBySession(), cmp.AllowUnexported(outcome{}, place{})); diff != "" {
		t.Errorf("a restart changed what is stored: %s", diff)
	}
}

// wantBeside wants what the log says, and beside it what was told about events
// after end before the log lost them.
func (w *world) wantBeside(lost map[place][]outcome, end uint64) {
	w.t.Helper()
	gone := map[outcome]bool{}
	for _, all := range lost {
		for _, o := range all {
			var body struct {
				Cause events.Cause `json:"caused_by"`
			}
			if err := events.Unmarshal([]byte(o.data), &body); err != nil {
				w.t.Fatal(err)
			}
			if body.Cause.Seq > end {
				gone[o] = true
			}
		}
	}
	if len(gone) == 0 {
		w.t.Fatal("nothing was told about the lost events")
	}
	have := map[place][]outcome{}
	for p, all := range w.toldBySession() {
		for _, o := range all {
			if !gone[o] {
				have[p] = append(have[p], o)
			}
			delete(gone, o)
		}
	}
	if len(gone) > 0 {
		w.t.Errorf("%d outcomes about lost events are no longer stored", len(gone))
	}
	if diff := cmp.Diff(bySession(w.redecided()), have, cmp.AllowUnexported(outcome{}, place{})); diff != "" {
		w.t.Errorf("stored outcomes are not what the log says (-log +stored):\n%s", diff)
	}
}

// A log of the same age and length with other events is not taken for the one
// that the outcomes were decided on.
func TestLogHasOtherEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	live(t, dir, "a", 1, 12, 20)
	other := copyOf(t, dir)
	live(t, other, "", 12, 20, 24) // earlier: they did not take the place of what was lost
	live(t, dir, "b", 12, 20, 20)
	replaceLog(t, dir, other)
	w := newWorld(t, dir)
	failed := make(chan worker.PartitionFailed, 100)
	r := w.start("refused", worker.Listener{
		PartitionFailed:   func(e worker.PartitionFailed) { failed <- e },
		PartitionAcquired: func(e worker.PartitionAcquired) { t.Errorf("partition %d takes turns", e.Partition) },
	})
	for range 2 * w.streams.Partitions { // each is tried again
		select {
		case e := <-failed:
			if !strings.Contains(e.Err.Error(), "restore SESSIONS and OUTCOMES from one backup") {
				t.Errorf("partition %d failed with %v", e.Partition, e.Err)
			}
		case err := <-r.done:
			t.Fatalf("the worker ended: %v", err)
		case <-time.After(waitLimit):
			t.Fatal("no partition failed within a minute")
		}
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
}

// A log that was recreated beside old outcomes is refused, again and again, with
// an error that states what to do.
func TestLogMadeAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	told := live(t, dir, "a", 1, 12, 20)
	w := newWorld(t, dir)
	if err := w.js.DeleteStream(t.Context(), topology.LogStream); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.streams, err = topology.Ensure(t.Context(), w.js, topology.Config{Partitions: 4, CreateBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.wantRefused("the outcomes belong to another log")
		for n := 1; n < 20; n++ { // as long as the old one, and longer
			w.publishAll(4, n)
		}
	}
	if diff := cmp.Diff(told, w.toldBySession(), cmp.AllowUnexported(outcome{}, place{})); diff != "" {
		t.Errorf("a refused worker changed what is stored: %s", diff)
	}
}

// wantRefused wants a worker's Run to end with an error that holds text.
func (w *world) wantRefused(text string) {
	w.t.Helper()
	r := w.start("refused", worker.Listener{})
	select {
	case err := <-r.done:
		if err == nil || !strings.Contains(err.Error(), text) {
			w.t.Errorf("the worker ended with %v, not with: %s", err, text)
		}
	case <-r.worker.Ready():
		w.t.Error("the worker took turns")
		_ = r.stop() // the test has failed already
	}
}

// Outcomes that find no room wait, and go out once there is some.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	w := openWorld(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4, MaxBytesOutcomes: 200 << 10})
	w.outcomeBytes = -1 // or a tenant would leave room
	said := make(chan worker.Retrying, 1024)
	stop := w.run("a", worker.Listener{Retrying: func(i worker.Retrying) { said <- i }})
	deadline := time.After(waitLimit)
	n := 1
	for full := false; !full; n++ {
		w.publishAll(8, n)
		select {
		case i := <-said:
			_, full = errors.AsType[*commit.StoreFullError](i.Err)
		case <-deadline:
			t.Fatal("the store does not get full")
		default:
		}
	}
	for range 5 { // an agent does not wait
		w.publishAll(8, n)
		n++
	}
	var err error
	if w.streams, err = topology.Ensure(t.Context(), w.js, topology.Config{MaxBytesOutcomes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	w.wantAsLogSays()
}

// A stop that cannot store what is decided reports that; the next start stores it.
func TestStopWithFullStore(t *testing.T) {
	t.Parallel()
	w := openWorld(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1, MaxBytesOutcomes: 100 << 10})
	w.drainTimeout, w.outcomeBytes = 100*time.Millisecond, -1
	full := make(chan struct{}, 1024)
	stop := w.run("a", worker.Listener{Retrying: func(i worker.Retrying) {
		if _, ok := errors.AsType[*commit.StoreFullError](i.Err); ok {
			full <- struct{}{}
		}
	}})
	deadline := time.After(waitLimit)
	for n := 1; len(full) == 0; n++ {
		w.publishAll(8, n)
		select {
		case <-deadline:
			t.Fatal("the store does not get full")
		default:
		}
	}
	if err := stop(); err == nil || !strings.Contains(err.Error(), "ran out of time") {
		t.Errorf("the stop says %v", err)
	}
	var err error
	if w.streams, err = topology.Ensure(t.Context(), w.js, topology.Config{MaxBytesOutcomes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	w.drainTimeout = 0
	stop = w.run("b", worker.Listener{})
	w.settle()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	w.wantAsLogSays()
}
