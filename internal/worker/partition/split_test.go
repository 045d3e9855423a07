package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/erase"
	"compactd/internal/broker/retry"
	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/stream"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/events/partitions"
	"compactd/internal/kv"
	"compactd/internal/worker/limit"
	"compactd/internal/worker/observe"
	"compactd/internal/worker/outcomelog"
)

// splitEnv is a server with a log whose growth has begun.
type splitEnv struct {
	*brokertest.Env
	dir      string           // of the server
	listener observe.Listener // of the next partition that is served
}

func newSplitEnv(t *testing.T, partitions int) *splitEnv {
	env := &splitEnv{dir: t.TempDir()}
	env.Env = brokertest.Open(t, env.dir, topology.Config{Partitions: partitions})
	var err error
	if env.Streams.Partitions, err = env.Streams.Partitions.Grow(); err != nil {
		t.Fatal(err)
	}
	return env
}

// serve serves a partition, in a set of its own, until the test ends or stop is called.
func (env *splitEnv) serve(owner string, id int, dir string) (set *Set, at observe.PartitionAcquired, stop func()) {
	env.T.Helper()
	set = env.set(owner, dir)
	served, ended, stop := env.begin(set, id)
	select {
	case at = <-served:
	case err := <-ended:
		env.T.Fatalf("partition %d is not served: %v", id, err)
	}
	return set, at, stop
}

// set is the partitions of a worker.
func (env *splitEnv) set(owner, dir string) *Set {
	return NewSet(env.JS, Config{
		Read: env.NC, Commit: env.NC, Texts: env.NC, Streams: env.Streams, Compaction: simulatedConfigs()[1], Owner: owner, Listener: env.listener,
		Dir: dir, SnapshotEvery: time.Hour, CheckpointEvery: 10 * time.Millisecond, CheckpointEvents: 100, MarkerEvery: 10 * time.Millisecond,
		MaxLedgers: 100, Memory: 64 << 20, OutcomeBytes: -1, MaxAhead: 100, DrainTimeout: time.Minute, Limiter: limit.New(limit.Config{}),
	})
}

// begin begins to serve a partition, until the test ends or stop is called.
func (env *splitEnv) begin(set *Set, id int) (served chan observe.PartitionAcquired, ended chan error, stop func()) {
	ctx, cancel := context.WithCancel(env.T.Context())
	all, end := NewStopTime(ctx, time.Minute)
	served, ended = make(chan observe.PartitionAcquired, 1), make(chan error, 1)
	go func() {
		ended <- set.Serve(ctx, all, id, func(e observe.PartitionAcquired) { served <- e }, func() {})
		close(ended)
	}()
	stop = sync.OnceFunc(func() {
		defer end()
		cancel()
		if err := <-ended; err != nil {
			env.T.Error(err)
		}
	})
	env.T.Cleanup(stop)
	return served, ended, stop
}

// snapshot puts the file of a partition into the store once it has an event.
func (env *splitEnv) snapshot(set *Set, id int, seq uint64) {
	env.T.Helper()
	p := set.At(id)
	if err := p.file.await(brokertest.Within(env.T, time.Minute), measure.Seq(seq)); err != nil {
		env.T.Fatal(err)
	}
	set.snapshots.take(env.T.Context(), p.checkpointer, 1)
	if found, err := set.snapshots.store.Newest(env.T.Context(), id); err != nil || found.Marker.Cursor < seq {
		env.T.Fatalf("the snapshot of partition %d is %+v, %v", id, found, err)
	}
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
	env := newSplitEnv(t, 1)
	stays, moves := of(0), of(1)
	dir := t.TempDir()
	set, _, stop := env.serve("a", 0, dir)
	env.turn(stays, 1)
	first := env.turn(moves, 1) + 1
	if n := env.turns(set, 0, moves, first-1); n != 1 {
		t.Fatalf("%d turns", n)
	}
	stale := NewSet(env.JS, set.config)
	if decides, err := stale.Decides(t.Context(), 1); err != nil || decides {
		t.Errorf("the child is split off before the split: %v", err)
	}
	if err := set.At(0).Split(); err != nil {
		t.Fatal(err)
	}
	want := partitions.Split{Parent: 0, Child: 1, First: first}
	if _, err := set.At(0).Inspect(events.Address{Tenant: "t", Session: moves}, func(*compaction.Ledger) {}); !errors.Is(err, ErrMoved) {
		t.Errorf("the ledger of a session of the child: %v", err)
	}
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
	env.eventually("list", func() (bool, error) { // not before the owner has learned that the split is stored
		found, err := set.At(0).Sessions("t", "", 1)
		if errors.Is(err, ErrNotServing) {
			return false, nil
		}
		if !cmp.Equal(found, []string{stays}) {
			t.Errorf("the partition has the sessions %v", found)
		}
		return true, err
	})
	if err := set.At(0).Overviews(func(a events.Address, _ *compaction.Overview) error {
		if a.Session == moves {
			t.Errorf("the partition has %s", a)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if decides, err := stale.Decides(t.Context(), 1); err != nil || !decides {
		t.Errorf("to another worker the child is not split off: %v", err)
	}
	env.turn(moves, 2)
	last := env.turn(stays, 2)
	if n := env.turns(set, 0, stays, last); n != 2 {
		t.Errorf("%d turns of a session that stays", n)
	}
	if p := set.Of(events.Address{Tenant: "t", Session: moves}); p != 1 {
		t.Errorf("partition %d has a session of the child", p)
	}
	env.eventually("drop", func() (bool, error) {
		data, err := os.ReadFile(set.fileOptions(0).Path)
		return err == nil && !bytes.Contains(data, []byte(moves)), err
	})
	if found, err := set.At(0).Sessions("t", "", 10); err != nil || !cmp.Equal(found, []string{stays}) {
		t.Errorf("the partition has the sessions %v, %v", found, err)
	}
	stop()
	set, _, _ = env.serve("b", 0, dir)
	if got := set.Table().Newest(0); got != want {
		t.Errorf("the next owner has the split %+v", got)
	}
	if m, err := commit.LastMarker(t.Context(), env.NC, 0); err != nil || m.Split != want || m.Owner != "b" {
		t.Errorf("its marker is %+v, %v", m, err)
	}
}

// The owner of a child makes its file from the parent's snapshot, requests the split, and goes on where the parent
// ended: with the turns that it had and with the epochs. Sessions that stay are not in its file. Its next owner does
// the same, also without a file, and where the parent's snapshot is of behind the split.
func TestChild(t *testing.T) {
	t.Parallel()
	env := newSplitEnv(t, 1)
	stays, moves := of(0), of(1)
	parent, _, _ := env.serve("a", 0, t.TempDir())
	env.turn(moves, 1)
	env.snapshot(parent, 0, env.turn(stays, 1))
	env.turn(stays, 2)
	last := env.turn(moves, 2)
	if n := env.turns(parent, 0, moves, last); n != 2 {
		t.Fatalf("%d turns", n)
	}
	dir := t.TempDir()
	child, at, stop := env.serve("b", 1, dir)
	if at.Snapshot != 2 || at.Replayed != 1 || at.Cursor != 4 || at.Epoch != 2 {
		t.Errorf("the child begins with %+v", at)
	}
	kept := env.turn(stays, 3)
	last = env.turn(moves, 3)
	if n := env.turns(child, 1, moves, last); n != 3 {
		t.Errorf("the child has %d turns of its session", n)
	}
	if n := env.turns(parent, 0, stays, last); n != 3 {
		t.Errorf("the parent has %d turns of its session", n)
	}
	if _, err := child.At(1).Inspect(events.Address{Tenant: "t", Session: stays}, func(*compaction.Ledger) {}); !errors.Is(err, ErrMoved) {
		t.Errorf("the child has a session that stays: %v", err)
	}
	if m, err := commit.LastMarker(t.Context(), env.NC, 1); err != nil || m.Split != (partitions.Split{Parent: 0, Child: 1, First: 5}) {
		t.Errorf("the child's marker is %+v, %v", m, err)
	}
	env.snapshot(parent, 0, kept)
	stop()
	for _, path := range []string{child.fileOptions(1).Path, parent.fileOptions(0).Path} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if name := map[bool]string{true: stays, false: moves}[path == child.fileOptions(1).Path]; bytes.Contains(data, []byte(name)) {
			t.Errorf("%s has %s", path, name)
		}
	}
	if err := child.snapshots.store.Erase(t.Context()); err != nil { // and only the log is left
		t.Fatal(err)
	}
	outcomes, err := topology.State(t.Context(), env.JS, topology.OutcomesStream)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outcomelog.ReadIndex(t.Context(), env.JS, 1, 2, outcomes.Last, false, func(f commit.Foreign) { // from a position of the parent
		t.Errorf("messages of the child are of no worker: %+v", f)
	}); err != nil {
		t.Fatal(err)
	}
	for owner, dir := range map[string]string{"c": dir, "d": t.TempDir()} {
		child, at, stop := env.serve(owner, 1, dir)
		if n := env.turns(child, 1, moves, last); n != 3 || at.Epoch < 3 {
			t.Errorf("the next owner has %d turns: %+v", n, at)
		}
		stop()
	}
}

// A parent whose snapshot is far behind makes another one before it is split, and its child has little to apply.
func TestChildBeginsClose(t *testing.T) {
	t.Parallel()
	env := newSplitEnv(t, 1)
	moves := of(1)
	parent, _, _ := env.serve("a", 0, t.TempDir())
	env.snapshot(parent, 0, env.turn(moves, 1))
	last, lag := uint64(0), parent.snapshots.minLag()
	for n := range 2 * lag {
		last = env.turn(moves, n+2)
	}
	if err := parent.At(0).file.await(brokertest.Within(t, time.Minute), measure.Seq(last)); err != nil {
		t.Fatal(err)
	}
	child, at, _ := env.serve("b", 1, t.TempDir())
	if int(at.Snapshot) < lag || at.Replayed > lag || uint64(at.Cursor) != last {
		t.Errorf("the child begins with %+v", at)
	}
	if n := env.turns(child, 1, moves, last); n != int64(2*lag+1) {
		t.Errorf("the child has %d turns of its session", n)
	}
}

// A child whose request reached an owner that has ended requests it of the next one.
func TestChildOfCrashedParent(t *testing.T) {
	t.Parallel()
	env := newSplitEnv(t, 1)
	moves, dir := of(1), t.TempDir()
	parent, _, stop := env.serve("a", 0, dir)
	last := env.turn(moves, 1)
	if err := parent.At(0).file.await(brokertest.Within(t, time.Minute), measure.Seq(last)); err != nil {
		t.Fatal(err)
	}
	stop()
	crashed, err := env.NC.SubscribeSync(prepareSubject(0))
	if err != nil {
		t.Fatal(err)
	}
	served, ended, _ := env.begin(env.set("b", t.TempDir()), 1)
	if _, err := crashed.NextMsg(time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := crashed.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	env.serve("c", 0, dir)
	select {
	case at := <-served:
		if uint64(at.Cursor) != last {
			t.Errorf("the child begins with %+v", at)
		}
	case err := <-ended:
		t.Fatal(err)
	case <-time.After(prepareTime / 2):
		t.Fatal("the child waits for an owner that has ended")
	}
}

// A worker has one partition split off after the other: the sessions of a child wait from the split until it is
// served, and no longer for others.
func TestChildrenTakeTurns(t *testing.T) {
	t.Parallel()
	env := newSplitEnv(t, 2)
	env.serve("a", 1, t.TempDir())
	children := env.set("b", t.TempDir())
	first, _, _ := env.begin(children, 2)
	env.eventually("the first child has its turn", func() (bool, error) { return len(children.splitting) == 1, nil })
	second, _, _ := env.begin(children, 3)
	env.eventually("the second child waits", func() (bool, error) {
		_, err := os.Stat(children.fileOptions(3).Path)
		return err == nil, nil
	})
	env.serve("c", 0, t.TempDir()) // which the first child waits for
	<-first
	<-second
	var order []int
	if err := stream.ReadStream(t.Context(), env.JS, topology.OutcomesStream, "out.>", 1, 0, func(m jetstream.Msg, _ uint64) error {
		var p int
		_, err := fmt.Sscanf(m.Subject(), "out.%d.", &p)
		if !slices.Contains(order, p) && (p > 1 || strings.Contains(m.Headers().Get(commit.HeaderMarker), `"child"`)) {
			order = append(order, p)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order, []int{0, 2, 1, 3}) {
		t.Errorf("splits and take-overs were in the partitions %v", order)
	}
}

// When the partition that decides a session now has erased it, nothing of it stays with those that it was in before: not in
// the file of one that is served, though that crashed before it had overwritten what it dropped, not in a
// copy of that, and not in the file of a worker that served it once.
func TestEraseMoved(t *testing.T) {
	t.Parallel()
	env := newSplitEnv(t, 1)
	stays, moves := of(0), of(1)
	contains := func(path string) bool { return contains(t, path, moves) }
	once := t.TempDir()
	former, _, stop := env.serve("a", 0, once)
	env.turn(stays, 1)
	env.snapshot(former, 0, env.turn(moves, 1))
	stop()
	if !contains(former.fileOptions(0).Path) {
		t.Fatal("the file of the first owner has no session to erase")
	}
	dir := t.TempDir()
	parent, _, stop := env.serve("b", 0, dir)
	child, _, stopChild := env.serve("c", 1, t.TempDir())
	path := parent.fileOptions(0).Path
	env.eventually("drop", func() (bool, error) { return !contains(path), nil })
	stop()
	crashed(t, parent.fileOptions(0), events.Address{Tenant: "t", Session: moves})
	if !contains(path) {
		t.Fatal("the file has nothing of the session")
	}
	parent, _, stopParent := env.serve("b", 0, dir)
	env.snapshot(parent, 0, env.turn(stays, 2))
	idle := NewSet(env.JS, former.config)
	for _, set := range []*Set{parent, child, idle} {
		stop, err := set.subscribeErasures()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	if _, err := erase.Request(brokertest.Within(t, time.Minute), env.JS, events.Address{Tenant: "t", Session: moves}, "f"); err != nil {
		t.Fatal(err)
	}
	env.eventually("erase it from the file of the parent", func() (bool, error) { return !contains(path), nil })
	env.eventually("erase the snapshots", func() (bool, error) {
		_, err := parent.snapshots.store.Newest(t.Context(), 0)
		if errors.Is(err, snapshot.ErrNone) {
			return true, nil
		}
		return false, err
	})
	env.eventually("remove the file of the first owner", func() (bool, error) {
		_, err := os.Stat(idle.fileOptions(0).Path)
		return errors.Is(err, os.ErrNotExist), nil
	})
	stopParent()
	if err := child.snapshots.store.Erase(t.Context()); err != nil {
		t.Fatal(err)
	}
	parent, _, _ = env.serve("d", 0, t.TempDir()) // from the log alone, which has lost events from before the split
	if n := env.turns(parent, 0, stays, env.turn(stays, 3)); n != 3 {
		t.Errorf("the session that stays has %d turns", n)
	}
	if _, err := erase.Request(brokertest.Within(t, time.Minute), env.JS, events.Address{Tenant: "t", Session: stays}, "g"); err != nil {
		t.Fatal(err)
	}
	stopChild()
	if err := child.snapshots.store.Erase(t.Context()); err != nil {
		t.Fatal(err)
	}
	child, _, _ = env.serve("e", 1, t.TempDir())
	if n := env.turns(child, 1, moves, env.turn(moves, 1)); n != 1 {
		t.Errorf("the session that begins again has %d turns", n)
	}
}

// An outcome of a session that moved is not the last message of its former partition for long, even if no event follows:
// the erasure by the partition that has the session now waits for a later marker.
func TestMarkerBehindMoved(t *testing.T) {
	t.Parallel()
	env := newSplitEnv(t, 1)
	moves := events.Address{Tenant: "t", Session: of(1)}
	parent, _, _ := env.serve("a", 0, t.TempDir())
	env.turn(moves.Session, 1)
	env.serve("b", 1, t.TempDir())
	done := events.Erased{Header: events.Header{V: events.Version, ID: "erased-f"}, Seq: 1}
	parent.At(0).queue.confirm(emitted{address: moves, outcome: compaction.Outcome{Kind: events.KindErased, Body: &done}})
	env.eventually("store a marker alone", func() (bool, error) {
		m, err := stream.LastOf(t.Context(), env.NC, topology.OutcomesStream, events.OutcomeFilter(0))
		if err != nil || m.Subject != events.Marker(0) {
			return false, err
		}
		erased, err := stream.LastOf(t.Context(), env.NC, topology.OutcomesStream, events.Outcome(0, events.KindErased, moves))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		return err == nil && m.Seq > erased.Seq, err
	})
}

// A session that the child erases before the parent has dropped it, and before the parent has learned its
// split, leaves the parent's file and its snapshots with the drop.
func TestEraseBeforeDrop(t *testing.T) {
	t.Parallel()
	env := newSplitEnv(t, 1)
	moves, secret := of(1), "text-that-must-not-remain"
	stored, goOn := make(chan struct{}), make(chan struct{})
	known := sync.OnceFunc(func() { close(stored) })
	env.listener.Committed = func(observe.Committed) {
		if m, err := commit.LastMarker(t.Context(), env.NC, 0); err == nil && m.Split != (partitions.Split{}) {
			known()
			<-goOn
		}
	}
	parent, _, _ := env.serve("a", 0, t.TempDir())
	proceed := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(proceed)
	env.listener = observe.Listener{}
	for i := range 300 { // pages of few would be used again at once
		if a := (events.Address{Tenant: "t", Session: fmt.Sprint("other-", i)}); events.PartitionOf(a, 2) == 1 {
			env.turn(a.Session, 1)
		}
	}
	last := env.Turn(moves, fmt.Sprintf(`{"v":1,"turn":1,"messages":[{"role":"user","content":%q}]}`, secret))
	env.snapshot(parent, 0, last)
	child, _, _ := env.serve("b", 1, t.TempDir())
	<-stored
	all := func(events.Address, *compaction.Overview) error { return nil }
	if _, err := parent.At(0).Sessions("t", "", 1); !errors.Is(err, ErrNotServing) || !errors.Is(parent.At(0).Overviews(all), ErrNotServing) {
		t.Errorf("sessions are listed without those of the child: %v", err)
	}
	for _, set := range []*Set{parent, child} {
		stop, err := set.subscribeErasures()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	if !contains(t, parent.fileOptions(0).Path, moves) {
		t.Fatal("the parent has dropped the session")
	}
	if _, err := erase.Request(brokertest.Within(t, time.Minute), env.JS, events.Address{Tenant: "t", Session: moves}, "f"); err != nil {
		t.Fatal(err)
	}
	parent.snapshots.take(t.Context(), parent.At(0).checkpointer, 1)
	if found, err := parent.snapshots.store.Newest(t.Context(), 0); err != nil || found.Marker.Cursor < last {
		t.Fatalf("there is no snapshot of the file before the drop: %+v, %v", found, err)
	}
	proceed()
	env.eventually("erase the snapshots", func() (bool, error) {
		_, err := parent.snapshots.store.Newest(t.Context(), 0)
		if errors.Is(err, snapshot.ErrNone) {
			return true, nil
		}
		return false, err
	})
	for _, set := range []*Set{parent, child} {
		for id := range 2 {
			if path := set.fileOptions(id).Path; set.At(id) != nil && contains(t, path, moves) {
				t.Errorf("%s has the session", path)
			}
		}
	}
	if err := filepath.WalkDir(env.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && contains(t, path, secret) {
			t.Errorf("%s has the text", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// contains reports whether a file has a text.
func contains(t *testing.T, path, text string) bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(data, []byte(text))
}

// crashed leaves a file as a crash does that comes between a checkpoint which drops a session and the overwriting of its
// pages.
func crashed(t *testing.T, o kv.Options, a events.Address) {
	t.Helper()
	store, aside, err := kv.Open(o)
	if err != nil || aside != nil {
		t.Fatal(err, aside)
	}
	var rows []compaction.Row // of many pages: a few are used again at once
	for i := range 100 {
		rows = append(rows, compaction.Row{Name: fmt.Sprint("r", i), Data: make([]byte, 1<<10)})
	}
	for _, c := range []kv.Change{{Address: a, Rows: rows}, {Address: a, Drop: true}} {
		if err := store.Checkpoint(store.Position(), []kv.Change{c}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
