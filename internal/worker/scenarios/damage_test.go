package scenarios_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/topology"
	"compactd/internal/events"
	"compactd/internal/events/codec"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// publishAndDecide publishes turns from ≤ n < to of four sessions on a server in dir, has a
// worker decide them, stops both, and returns the outcomes. Without an owner it only publishes.
func publishAndDecide(t *testing.T, dir, owner string, from, to, flavour int) map[workertest.Place][]workertest.Outcome {
	t.Helper()
	env := workertest.New(t, dir)
	defer env.Stop()
	if owner != "" {
		defer env.Run(owner, observe.Listener{})()
	}
	for n := from; n < to; n++ {
		for s := range 4 {
			env.Publish(events.KindTurn, "s"+string(rune('0'+s)), agentTurn(flavour+s, n))
		}
	}
	if owner != "" {
		env.AwaitDecided()
	}
	return env.OutcomesBySession()
}

// streamDir is the directory of a stream, below the directory of its server.
func streamDir(t *testing.T, dir, stream string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", stream))
	if err != nil || len(found) != 1 {
		t.Fatalf("directory of %s: %v %v", stream, found, err)
	}
	return found[0]
}

// replaceLog puts the log that another directory has into dir, as a power loss or a
// wrong backup would.
func replaceLog(t *testing.T, dir, from string) {
	t.Helper()
	to := streamDir(t, dir, topology.LogStream)
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(streamDir(t, from, topology.LogStream))); err != nil {
		t.Fatal(err)
	}
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A worker continues at the end of a truncated log and reports the truncation. Outcomes of
// the lost events stay published and are ignored, after this start and after the next.
//
// Agents that publish before the worker starts take the lost sequences, up to the marker
// and beyond.
func TestLogTruncated(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]int{"no new turns": 12, "some new turns": 13, "many new turns": 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLogTruncated(t, early)
		})
	}
}

// testLogTruncated publishes turns up to upTo, without 12, before the worker starts.
func testLogTruncated(t *testing.T, upTo int) {
	dir := t.TempDir()
	publishAndDecide(t, dir, "a", 1, 12, 20)
	early := workertest.New(t, dir)
	end := early.Streams.Log.Last
	early.Stop()
	before := copyDir(t, dir)
	lost := publishAndDecide(t, dir, "b", 12, 24, 20)
	publishAndDecide(t, before, "", 13, upTo+1, 27)
	replaceLog(t, dir, before)

	env := workertest.New(t, dir)
	retries := make(chan observe.Retrying, 64)
	stop := env.Run("c", observe.Listener{Retrying: func(i observe.Retrying) { retries <- i }})
	reported := false
	for range len(retries) {
		i := <-retries
		reported = reported || i.Step == "open" && strings.Contains(i.Err.Error(), "log truncated")
	}
	if !reported {
		t.Error("the log was truncated, and the worker did not report it")
	}
	for n := 12; n < 18; n++ {
		for s := range 4 {
			env.Publish(events.KindTurn, "s"+string(rune('0'+s)), agentTurn(27+s, n))
		}
	}
	env.AwaitDecided()
	stop()
	wantRedecidedBeside(env, lost, end)
	env.Stop()

	after := publishAndDecide(t, dir, "d", 18, 30, 27)
	again := workertest.New(t, dir)
	wantRedecidedBeside(again, lost, end)
	if diff := cmp.Diff(after, again.OutcomesBySession()); diff != "" {
		t.Errorf("a restart changed what is stored: %s", diff)
	}
}

// The log is truncated below the splits of a growth. Partitions decide again up to there, their children go on behind it,
// and no agent has to publish for that.
func TestLogTruncatedBelowSplit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	publishAndDecide(t, dir, "a", 1, 12, 20)
	before := copyDir(t, dir)
	grown := workertest.New(t, dir)
	end, stop := grown.Streams.Log.Last, grown.Run("b", observe.Listener{})
	turns := func(env *workertest.Env, from, to, flavour int) {
		t.Helper()
		for n := from; n < to; n++ {
			for s := range 4 {
				env.Publish(events.KindTurn, "s"+string(rune('0'+s)), agentTurn(flavour+s, n))
			}
		}
		env.AwaitDecided()
	}
	turns(grown, 12, 18, 20)
	if _, err := topology.Grow(t.Context(), grown.JS); err != nil {
		t.Fatal(err)
	}
	err := retry.Every(10*time.Millisecond).Until(brokertest.Within(t, time.Minute), func() (bool, error) {
		streams, err := topology.Describe(t.Context(), grown.JS)
		grown.Streams = streams
		return len(streams.Partitions.Unsplit()) == 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
	turns(grown, 18, 24, 20)
	lost := grown.OutcomesBySession()
	stop()
	grown.Stop()
	replaceMessages(t, dir, before)

	env := workertest.New(t, dir)
	stop = env.Run("c", observe.Listener{}) // returns when each partition takes turns
	turns(env, 12, 18, 27)
	stop()
	wantRedecidedBeside(env, lost, end)
	env.Stop()

	after := publishAndDecide(t, dir, "d", 18, 30, 27)
	again := workertest.New(t, dir)
	wantRedecidedBeside(again, lost, end)
	if diff := cmp.Diff(after, again.OutcomesBySession()); diff != "" {
		t.Errorf("a restart changed what is stored: %s", diff)
	}
}

// replaceMessages is replaceLog for a log whose configuration was stored before the power loss.
func replaceMessages(t *testing.T, dir, from string) {
	t.Helper()
	kept := map[string][]byte{}
	for _, name := range []string{"meta.inf", "meta.sum"} {
		data, err := os.ReadFile(filepath.Join(streamDir(t, dir, topology.LogStream), name))
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = data
	}
	replaceLog(t, dir, from)
	for name, data := range kept {
		if err := os.WriteFile(filepath.Join(streamDir(t, dir, topology.LogStream), name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// wantRedecidedBeside wants the outcomes that follow from the log, and beside them those that
// were published of events after end, before the log lost them.
func wantRedecidedBeside(env *workertest.Env, lost map[workertest.Place][]workertest.Outcome, end uint64) {
	env.T.Helper()
	gone := map[workertest.Outcome]bool{}
	for _, all := range lost {
		for _, o := range all {
			var body struct {
				Cause events.Cause `json:"caused_by"`
			}
			if err := codec.Unmarshal([]byte(o.Data), &body); err != nil {
				env.T.Fatal(err)
			}
			if body.Cause.Seq > end {
				gone[o] = true
			}
		}
	}
	if len(gone) == 0 {
		env.T.Fatal("no outcome of a lost event was published: the test shows nothing")
	}
	have := map[workertest.Place][]workertest.Outcome{}
	for p, all := range env.OutcomesBySession() {
		for _, o := range all {
			if !gone[o] {
				have[p] = append(have[p], o)
			}
			delete(gone, o)
		}
	}
	if len(gone) > 0 {
		env.T.Errorf("%d outcomes of lost events are no longer stored", len(gone))
	}
	if diff := cmp.Diff(workertest.BySession(env.Redecided()), have); diff != "" {
		env.T.Errorf("stored outcomes differ from those of the log (-log +stored):\n%s", diff)
	}
}

// A log of the same age and length with other events is not mistaken for the one that the
// outcomes were decided on.
func TestLogHasOtherEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	publishAndDecide(t, dir, "a", 1, 12, 20)
	other := copyDir(t, dir)
	publishAndDecide(t, other, "", 12, 20, 24) // published before those that are lost: they did not replace them
	publishAndDecide(t, dir, "b", 12, 20, 20)
	replaceLog(t, dir, other)
	env := workertest.New(t, dir)
	failed := make(chan observe.PartitionFailed, 100)
	r := env.Start("refused", observe.Listener{
		PartitionFailed:   func(e observe.PartitionFailed) { failed <- e },
		PartitionAcquired: func(e observe.PartitionAcquired) { t.Errorf("partition %d takes turns", e.Partition) },
	})
	for range 2 * env.Streams.Partitions.Count() { // each is tried again
		select {
		case e := <-failed:
			if !strings.Contains(e.Err.Error(), "restore SESSIONS and OUTCOMES from one backup") {
				t.Errorf("partition %d failed with %v", e.Partition, e.Err)
			}
		case err := <-r.Done:
			t.Fatalf("the worker ended: %v", err)
		case <-time.After(workertest.WaitLimit):
			t.Fatal("no partition failed within a minute")
		}
	}
}

// A log that was recreated beside old outcomes is refused at every start, with an error that
// states what to do.
func TestLogRecreated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := publishAndDecide(t, dir, "a", 1, 12, 20)
	env := workertest.New(t, dir)
	if err := env.JS.DeleteStream(t.Context(), topology.LogStream); err != nil {
		t.Fatal(err)
	}
	var err error
	if env.Streams, err = topology.Ensure(t.Context(), env.JS, topology.Config{Partitions: 4, CreateBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		wantWorkerRefused(env, "the outcomes belong to another log")
		for n := 1; n < 20; n++ { // as long as the old one, and longer
			publishAll(env, 4, n)
		}
	}
	if diff := cmp.Diff(before, env.OutcomesBySession()); diff != "" {
		t.Errorf("a refused worker changed what is stored: %s", diff)
	}
}

// wantWorkerRefused wants a worker's Run to end with an error that contains text.
func wantWorkerRefused(env *workertest.Env, text string) {
	env.T.Helper()
	r := env.Start("refused", observe.Listener{})
	select {
	case err := <-r.Done:
		if err == nil || !strings.Contains(err.Error(), text) {
			env.T.Errorf("the worker ended with %v, not with: %s", err, text)
		}
	case <-r.Worker.Ready():
		env.T.Error("the worker took turns")
		_ = r.End() // the test has failed already
	}
}

// Outcomes wait while their stream is full, and are published once it has room.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 4, MaxBytesOutcomes: 200 << 10})
	env.OutcomeBytes = -1 // or the bound of a tenant would leave less
	retries := make(chan observe.Retrying, 1024)
	stop := env.Run("a", observe.Listener{Retrying: func(i observe.Retrying) { retries <- i }})
	deadline := time.After(workertest.WaitLimit)
	n := 1
	for full := false; !full; n++ {
		publishAll(env, 8, n)
		select {
		case i := <-retries:
			_, full = errors.AsType[*commit.StoreFullError](i.Err)
		case <-deadline:
			t.Fatal("the store does not get full")
		default:
		}
	}
	for range 5 { // an agent does not wait
		publishAll(env, 8, n)
		n++
	}
	var err error
	if env.Streams, err = topology.Ensure(t.Context(), env.JS, topology.Config{MaxBytesOutcomes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	env.AwaitDecided()
	stop()
	env.WantRedecided()
}

// A stop that cannot store the decided outcomes reports that; the next start stores them.
func TestStopWithFullStore(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1, MaxBytesOutcomes: 100 << 10})
	env.DrainTimeout, env.OutcomeBytes = 100*time.Millisecond, -1
	full := make(chan struct{}, 1024)
	r := env.StartReady("a", observe.Listener{Retrying: func(i observe.Retrying) {
		if _, ok := errors.AsType[*commit.StoreFullError](i.Err); ok {
			full <- struct{}{}
		}
	}})
	deadline := time.After(workertest.WaitLimit)
	for n := 1; len(full) == 0; n++ {
		publishAll(env, 8, n)
		select {
		case <-deadline:
			t.Fatal("the store does not get full")
		default:
		}
	}
	if err := r.End(); err == nil || !strings.Contains(err.Error(), "ran out of time") {
		t.Errorf("the stop returned %v", err)
	}
	var err error
	if env.Streams, err = topology.Ensure(t.Context(), env.JS, topology.Config{MaxBytesOutcomes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	env.DrainTimeout = 0
	stop := env.Run("b", observe.Listener{})
	env.AwaitDecided()
	stop()
	env.WantRedecided()
}
