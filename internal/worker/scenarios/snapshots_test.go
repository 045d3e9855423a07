package scenarios_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/commit"
	"compactd/internal/broker/embedded"
	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/compaction/measure"
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// snapshotEvents records what the listener of a worker receives about snapshots.
type snapshotEvents struct {
	ledgerEvents
	more chan struct{}

	mu       sync.Mutex // guards the fields below
	stored   map[int]observe.Snapshotted
	restored map[int]measure.Seq // cursors of the restored snapshots, by partition
	retries  []error
}

func newSnapshotEvents() *snapshotEvents {
	return &snapshotEvents{more: make(chan struct{}, 1), stored: map[int]observe.Snapshotted{}, restored: map[int]measure.Seq{}}
}

func (seen *snapshotEvents) listener() observe.Listener {
	return observe.Tee(seen.ledgerEvents.listener(), observe.Listener{
		Snapshotted: func(s observe.Snapshotted) { seen.record(func() { seen.stored[s.Partition] = s }) },
		PartitionAcquired: func(a observe.PartitionAcquired) {
			seen.record(func() {
				if a.Snapshot > 0 {
					seen.restored[a.Partition] = a.Snapshot
				}
			})
		},
		Retrying: func(i observe.Retrying) {
			seen.record(func() { seen.retries = append(seen.retries, fmt.Errorf("%s: %w", i.Step, i.Err)) })
		},
	})
}

func (seen *snapshotEvents) record(f func()) {
	seen.mu.Lock()
	defer seen.mu.Unlock()
	f()
	select {
	case seen.more <- struct{}{}:
	default:
	}
}

// await waits until a snapshot of every partition is stored.
func (seen *snapshotEvents) await(t *testing.T, partitions int) {
	t.Helper()
	deadline := time.After(workertest.WaitLimit)
	for {
		seen.mu.Lock()
		n, retries := len(seen.stored), seen.retries
		seen.mu.Unlock()
		if n == partitions {
			return
		}
		select {
		case <-seen.more:
		case <-deadline:
			t.Fatalf("snapshots of %d partitions, of %d; retries: %v", n, partitions, retries)
		}
	}
}

// runOnEmpty runs a worker on an empty directory until everything that do publishes is decided.
func runOnEmpty(env *workertest.Env, owner string, do func()) *snapshotEvents {
	env.T.Helper()
	env.Ledgers = env.T.TempDir()
	return runHere(env, owner, do)
}

func runHere(env *workertest.Env, owner string, do func()) *snapshotEvents {
	env.T.Helper()
	seen := newSnapshotEvents()
	stop := env.Run(owner, seen.listener())
	do()
	env.AwaitDecided()
	stop()
	return seen
}

// rows reads all ledgers of the directory: a hash of each row.
func rows(env *workertest.Env) map[string]string {
	env.T.Helper()
	all := map[string]string{}
	for p := range env.Streams.Partitions.Count() {
		s := openLedgers(env, p, true)
		err := s.Each(func(a events.Address, rows []compaction.Row) error {
			for _, r := range rows {
				all[a.String()+" "+r.Name] = fmt.Sprintf("%x", sha256.Sum256(r.Data))
			}
			return nil
		})
		if err != nil {
			env.T.Fatal(err)
		}
		if err := s.Close(); err != nil {
			env.T.Fatal(err)
		}
	}
	return all
}

// eraseSnapshots lets the next worker begin from zero.
func eraseSnapshots(env *workertest.Env) {
	env.T.Helper()
	if err := snapshot.New(env.JS).Erase(env.T.Context()); err != nil {
		env.T.Fatal(err)
	}
}

func nothing() {}

// P10: a worker on another machine continues from the snapshots of the previous owner and replays
// only the events after them. Its ledgers are byte by byte those of a worker that replays
// everything, and both publish the same outcomes.
func TestFromSnapshotAndFromZero(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	const sessions, before, after = 24, 16, 4
	first := runHere(env, "a", publishRounds(env, sessions, 1, before))
	first.await(t, 4)
	env.SnapshotEvery = -1 // the next workers leave the snapshots as they are
	runHere(env, "b", publishRounds(env, sessions, before, before+after))

	seen := runOnEmpty(env, "c", nothing)
	if len(seen.restored) != 4 || seen.replayed != sessions*after {
		t.Errorf("restored %d partitions from snapshots, and replayed %d events, not the %d after them", len(seen.restored), seen.replayed, sessions*after)
	}
	publishRounds(env, sessions, before+after, before+2*after)()
	runHere(env, "c", nothing)
	fromSnapshot := rows(env)

	eraseSnapshots(env)
	d := runOnEmpty(env, "d", nothing)
	if len(d.restored) != 0 || d.replayed != sessions*(before+2*after-1) {
		t.Errorf("from zero %d events were replayed, and %d partitions restored", d.replayed, len(d.restored))
	}
	fromZero, different := rows(env), 0
	if diff := cmp.Diff(fromZero, fromSnapshot); diff != "" {
		t.Errorf("ledgers from snapshots are not those from zero (-zero +snapshot):\n%s", diff)
		different = 1
	}
	env.WantRedecided()
	figures.Print(t, "P10", "from_snapshots", seen.replayed, "from_zero", d.replayed, "rows", len(fromZero), "different", different)
}

// Snapshots are taken while turns arrive. The next owner continues from the newest one, whenever
// it was taken, with the outcomes that follow from the log.
func TestSnapshotsUnderLoad(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	env.SnapshotEvery = 5 * time.Millisecond
	const sessions = 16
	taken := 0
	for i := range 4 {
		env.Ledgers = t.TempDir()
		seen := newSnapshotEvents()
		stop := env.Run(fmt.Sprint("a", i), seen.listener())
		publishRounds(env, sessions, 1+6*i, 7+6*i)()
		seen.await(t, 4)
		taken += len(seen.stored)
		if i > 0 && len(seen.restored) != 4 {
			t.Errorf("round %d: %d partitions continued from snapshots; retries: %v", i, len(seen.restored), seen.retries)
		}
		stop()
	}
	runOnEmpty(env, "last", nothing)
	env.WantRedecided()
}

// A snapshot that is damaged, or belongs to another log or partition, is not used, and the
// partition is rebuilt from the log (P11).
func TestSnapshotNotUsed(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	const sessions = 8
	runHere(env, "a", publishRounds(env, sessions, 1, 8))
	sound := newestSnapshot(env, 0)
	other := withLedgers(t)
	runHere(other, "x", publishRounds(other, sessions, 1, 8))
	foreign := newestSnapshot(other, 0)
	flipped := []byte(strings.Clone(string(sound.data)))
	for at := 3*4096 + 20; at < len(flipped); at += 512 {
		flipped[at] ^= 0x55
	}
	late, wrong := sound.Marker, sound.Marker
	late.Epoch += 100
	wrong.Chain++
	for name, c := range map[string]struct {
		reason string
		marker commit.Marker
		data   []byte
	}{
		"another log":          {"another stream", foreign.Marker, foreign.data},
		"another log, hidden":  {"its metadata names", sound.Marker, foreign.data},
		"another partition":    {"its metadata names", sound.Marker, newestSnapshot(env, 1).data},
		"another history":      {"has not begun", late, sound.data},
		"another chain":        {"not the one the outcomes were decided on", wrong, sound.data},
		"damaged when put":     {"damaged", sound.Marker, flipped},
		"cut short when put":   {"damaged", sound.Marker, sound.data[:len(sound.data)/2]},
		"empty":                {"empty", sound.Marker, nil},
		"another page's bytes": {"damaged", sound.Marker, append(sound.data[:8192:8192], sound.data[4096:]...)},
	} {
		putSnapshot(env, 0, c.marker, sound.Outcomes, c.data)
		env.SnapshotEvery = -1
		got := runOnEmpty(env, name, nothing)
		if _, used := got.restored[0]; used || len(got.retries) == 0 || !strings.Contains(fmt.Sprint(got.retries), c.reason) {
			t.Errorf("%s: used: %t; retries: %v", name, used, got.retries)
		}
		if len(got.restored) != 3 {
			t.Errorf("%s: %d other partitions continued from their snapshots", name, len(got.restored))
		}
	}
	env.WantRedecided()
}

// A snapshot is not used when events after it have left the log. One without events after it is
// used, however old it is.
func TestSnapshotBeforeTheLog(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	runHere(env, "a", publishRounds(env, 8, 1, 8))
	log, err := env.JS.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	end := log.CachedInfo().State.LastSeq
	env.SnapshotEvery = -1
	purge := func(seq uint64) {
		t.Helper()
		if err := log.Purge(t.Context(), jetstream.WithPurgeSequence(seq)); err != nil {
			t.Fatal(err)
		}
	}
	env.Publish(events.KindTurn, "s0", agentTurn(0, 8)) // now its partition's snapshot is behind
	purge(end + 1)
	if seen := runOnEmpty(env, "b", nothing); len(seen.restored) != 4 {
		t.Errorf("no event after the snapshots is lost, and %d of 4 were used; retries: %v", len(seen.restored), seen.retries)
	}
	env.Publish(events.KindTurn, "s0", agentTurn(0, 9))
	runHere(env, "c", nothing)
	purge(end + 2)
	if seen := runOnEmpty(env, "d", nothing); len(seen.restored) != 3 || !strings.Contains(fmt.Sprint(seen.retries), "the log begins at") {
		t.Errorf("%d snapshots were used, one of them before the log; retries: %v", len(seen.restored), seen.retries)
	}
}

// A rebuild from zero has no more ledgers in memory than the limit allows (P14), also from a log
// whose first events have expired. After a stop in the middle it continues from there.
func TestRebuildIsBounded(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	const sessions, turns = 120, 6
	env.SnapshotEvery = -1
	runHere(env, "a", publishRounds(env, sessions, 1, 1+turns))
	want := rows(env)
	env.MaxLedgers, env.CheckpointEvents = 40, 10

	whole := runOnEmpty(env, "b", nothing)
	if diff := cmp.Diff(want, rows(env)); diff != "" {
		t.Errorf("ledgers differ (-decided +rebuilt):\n%s", diff)
	}
	if whole.replayed != sessions*turns || whole.evicted < sessions {
		t.Errorf("%d events replayed, %d ledgers left memory", whole.replayed, whole.evicted)
	}

	env.Ledgers = t.TempDir()
	reached, stopped := make(chan struct{}, 1), make(chan struct{})
	seen := &ledgerEvents{checkpointed: func(observe.Checkpointed) {
		select {
		case reached <- struct{}{}:
		default:
		}
		<-stopped
	}}
	r := env.Start("c", seen.listener())
	<-reached
	r.Cancel()
	close(stopped)
	if err := <-r.Done; err != nil {
		t.Error(err)
	}
	rest := runHere(env, "d", nothing)
	if diff := cmp.Diff(want, rows(env)); diff != "" || rest.replayed >= sessions*turns || rest.replayed == 0 {
		t.Errorf("after a rebuild that was stopped %d events were replayed; ledgers differ:\n%s", rest.replayed, diff)
	}

	log, err := env.JS.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Purge(t.Context(), jetstream.WithPurgeSequence(sessions*2+1)); err != nil {
		t.Fatal(err)
	}
	aged := runOnEmpty(env, "e", nothing)
	again := runHere(env, "f", nothing)
	if len(aged.quarantined)+len(again.quarantined) > 0 || aged.replayed != sessions*(turns-2) || again.replayed != 0 {
		t.Errorf("from the rest of the log %d events were replayed, then %d; quarantined %v %v", aged.replayed, again.replayed, aged.quarantined, again.quarantined)
	}
}

// An owner that has a ledger file continues from it, unless the file is far behind.
func TestOwnFileFirst(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	runHere(env, "a", publishRounds(env, 8, 1, 6))
	own := env.Ledgers
	runOnEmpty(env, "b", publishRounds(env, 8, 6, 12))
	env.Ledgers = own
	if seen := runHere(env, "c", nothing); len(seen.restored) != 0 || seen.replayed != 8*6 {
		t.Errorf("%d partitions were restored and %d events replayed, with a file that is a little behind", len(seen.restored), seen.replayed)
	}
	env.WantRedecided()
}

// Before a hand-over the owner takes a snapshot if the next owner would have many events to
// replay, and only then.
func TestHandOverWithSnapshot(t *testing.T) {
	t.Parallel()
	for _, turns := range []int{100, 500} {
		t.Run(fmt.Sprint(turns), func(t *testing.T) {
			t.Parallel()
			env := workertest.Open(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
			env.Ledgers, env.CheckpointEvery, env.CheckpointEvents = t.TempDir(), time.Millisecond, 200
			stored := make(chan struct{})
			first := env.Start("a", observe.Listener{Checkpointed: func(c observe.Checkpointed) {
				if int(c.Cursor) == turns {
					close(stored)
				}
			}})
			for i := range turns {
				a := events.Address{Tenant: events.DefaultTenant, Session: fmt.Sprint(i)}
				if _, err := env.JS.PublishAsync(events.Published(events.KindTurn, a), []byte(`{"turn":1,"messages":[{"role":"user","content":"hello"}]}`)); err != nil {
					t.Fatal(err)
				}
			}
			<-stored
			env.Ledgers = t.TempDir()
			seen := newSnapshotEvents()
			second := env.Start("b", seen.listener())
			if err := <-joined(second); err != nil {
				t.Fatal(err)
			}
			first.Stop() // unless b has the partition already
			env.Publish(events.KindTurn, "last", agentTurn(1, 1))
			env.AwaitDecided()
			second.Stop()
			if used := seen.restored[0] > 0; used != (turns >= env.CheckpointEvents) {
				t.Errorf("after %d turns the next owner continued from a snapshot: %t", turns, used)
			}
			env.WantRedecided()
		})
	}
}

// joined returns a channel that gets nil once a worker is ready, or why it ended.
func joined(r *workertest.Running) <-chan error {
	out := make(chan error, 1)
	go func() {
		select {
		case <-r.Worker.Ready():
			out <- nil
		case err := <-r.Done:
			out <- fmt.Errorf("it ended: %w", err)
		}
	}()
	return out
}

// P11: whatever damage a snapshot takes in the store, the published outcomes are those that
// follow from the log.
func TestMutatedSnapshots(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	const sessions, mutations = 8, 16
	runHere(env, "a", publishRounds(env, sessions, 1, 10))
	r := rand.New(rand.NewPCG(1, 3))
	env.SnapshotEvery = -1
	sound := newestSnapshot(env, 0)
	dir := t.TempDir()
	used := 0
	for i := range mutations {
		path := fmt.Sprintf("%s/%d", dir, i)
		if err := os.WriteFile(path, sound.data, 0o600); err != nil {
			t.Fatal(err)
		}
		mutateFile(t, r, path, path)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		putSnapshot(env, 0, sound.Marker, sound.Outcomes, data)
		seen := runOnEmpty(env, fmt.Sprint(i), publishRounds(env, sessions, 10+i, 11+i))
		if _, ok := seen.restored[0]; ok {
			used++
		}
	}
	if used == mutations {
		t.Error("every mutated snapshot was used: the test shows nothing")
	}
	env.WantRedecided()
	different := 0
	if t.Failed() {
		different = 1
	}
	figures.Print(t, "P11", "mutations", mutations, "not_used", mutations-used, "used", used, "different", different)
}

// E8: an erased session is in no snapshot, nor in parts of older ones, although uploads continue
// during the erasure.
func TestForgetSnapshots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := workertest.New(t, dir)
	env.Ledgers, env.CheckpointEvery, env.SnapshotEvery = t.TempDir(), time.Millisecond, time.Millisecond
	seen := newSnapshotEvents()
	stop := env.Run("a", seen.listener())
	publishRounds(env, 16, 1, 4)()
	env.Publish(events.KindTurn, victim, secretTurn(1))
	env.AwaitDecided()
	seen.await(t, 4)
	store := streamDir(t, dir, "OBJ_"+topology.SnapshotsBucket)
	deadline := time.Now().Add(workertest.WaitLimit)
	for n := 4; len(filesContaining(t, victim, store)) == 0; n++ { // until the victim is in one
		if time.Now().After(deadline) {
			t.Fatal("the victim is in no snapshot: the test shows nothing")
		}
		publishRounds(env, 16, n, n+1)()
	}
	eraseSession(env, victim)
	for found := filesContaining(t, victim, store, env.Ledgers); len(found) > 0; found = filesContaining(t, victim, store, env.Ledgers) {
		if time.Now().After(deadline) { // the server removes files in the background
			t.Fatalf("the victim is in %q", found)
		}
	}
	stop()
	if found := filesContaining(t, victim, store, env.Ledgers); len(found) > 0 {
		t.Errorf("after the stop the victim is in %q", found)
	}
	runOnEmpty(env, "b", nothing)
	env.WantRedecided()
}

// E8, P6: a former owner, replaced while it did not look and followed by an erasure, stores no
// snapshot of its own file, and finds that it is fenced.
func TestStaleOwnerTakesNoSnapshot(t *testing.T) {
	t.Parallel()
	env := workertest.New(t, t.TempDir())
	env.Ledgers, env.CheckpointEvery, env.SnapshotEvery = t.TempDir(), time.Millisecond, time.Millisecond
	env.LeaseTTL = time.Hour // it does not renew its leases meanwhile
	seen, released := newSnapshotEvents(), make(chan error, 10)
	env.Run("a", observe.Tee(seen.listener(), observe.Listener{PartitionReleased: func(e observe.PartitionReleased) { released <- e.Err }}))
	for i := range 16 {
		env.Publish(events.KindTurn, fmt.Sprintf("s%d", i), workertest.Turn(1))
	}
	seen.await(t, 4)
	for id := range env.Streams.Partitions.Count() {
		claim := commit.Claim{Partition: id, Owner: "b", Config: env.Config.Hash(), LogCreated: env.Streams.Log.Created.UnixNano()}
		if _, _, err := commit.TakeOver(t.Context(), env.Conn, claim); err != nil {
			t.Fatal(err)
		}
	}
	eraseSnapshots(env)
	for id := range env.Streams.Partitions.Count() {
		if err := workertest.Next(t, released, "end of a partition"); !errors.Is(err, commit.ErrFenced) {
			t.Errorf("a partition ended with: %v", err)
		}
		if s, err := snapshot.New(env.JS).Newest(t.Context(), id); !errors.Is(err, snapshot.ErrNone) {
			t.Errorf("there is a snapshot of partition %d: %+v, %v", id, s, err)
		}
	}
}

// storedSnapshot is a snapshot with its bytes.
type storedSnapshot struct {
	*snapshot.Snapshot
	data []byte
}

func newestSnapshot(env *workertest.Env, partition int) storedSnapshot {
	env.T.Helper()
	s := snapshot.New(env.JS)
	newest, err := s.Newest(env.T.Context(), partition)
	if err != nil {
		env.T.Fatal(err)
	}
	var b strings.Builder
	if err := s.Read(env.T.Context(), newest, &b); err != nil {
		env.T.Fatal(err)
	}
	return storedSnapshot{Snapshot: newest, data: []byte(b.String())}
}

func putSnapshot(env *workertest.Env, partition int, m commit.Marker, outcomes uint64, data []byte) {
	env.T.Helper()
	u, err := snapshot.New(env.JS).Begin(env.T.Context(), partition)
	if err != nil {
		env.T.Fatal(err)
	}
	if err := u.Put(env.T.Context(), m, outcomes, strings.NewReader(string(data))); err != nil {
		env.T.Fatal(err)
	}
}
