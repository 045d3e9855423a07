package worker_test

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
	"compactd/internal/events"
	"compactd/internal/testkit/figures"
	"compactd/internal/worker"
)

// copied is what the listener of a worker with snapshots heard.
type copied struct {
	watched
	more chan struct{}

	mu       sync.Mutex // guards the fields below
	stored   map[int]worker.Snapshotted
	restored map[int]compaction.Seq // cursors of the snapshots gone on from, by partition
	said     []error
}

func newCopied() *copied {
	return &copied{more: make(chan struct{}, 1), stored: map[int]worker.Snapshotted{}, restored: map[int]compaction.Seq{}}
}

func (c *copied) listener() worker.Listener {
	return worker.Tee(c.watched.listener(), worker.Listener{
		Snapshotted: func(s worker.Snapshotted) { c.note(func() { c.stored[s.Partition] = s }) },
		PartitionAcquired: func(a worker.PartitionAcquired) {
			c.note(func() {
				if a.Snapshot > 0 {
					c.restored[a.Partition] = a.Snapshot
				}
			})
		},
		Retrying: func(i worker.Retrying) {
			c.note(func() { c.said = append(c.said, fmt.Errorf("%s: %w", i.Step, i.Err)) })
		},
	})
}

func (c *copied) note(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// await waits until a snapshot of every partition is stored.
func (c *copied) await(t *testing.T, partitions int) {
	t.Helper()
	deadline := time.After(waitLimit)
	for {
		c.mu.Lock()
		n, said := len(c.stored), c.said
		c.mu.Unlock()
		if n == partitions {
			return
		}
		select {
		case <-c.more:
		case <-deadline:
			t.Fatalf("snapshots of %d partitions, of %d; said: %v", n, partitions, said)
		}
	}
}

// elsewhere runs a worker on an empty folder until all is decided that do publishes.
func (w *world) elsewhere(owner string, do func()) *copied {
	w.t.Helper()
	w.ledgers = w.t.TempDir()
	return w.here(owner, do)
}

func (w *world) here(owner string, do func()) *copied {
	w.t.Helper()
	c := newCopied()
	stop := w.run(owner, c.listener())
	do()
	w.settle()
	if err := stop(); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// rows reads all ledgers of the folder, row by row: a hash of each.
func (w *world) rows() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for p := range w.streams.Partitions {
		s := w.openLedgers(p, true)
		err := s.Each(func(a events.Address, rows []compaction.Row) error {
			for _, r := range rows {
				all[a.String()+" "+r.Name] = fmt.Sprintf("%x", sha256.Sum256(r.Data))
			}
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

// eraseSnapshots lets the next worker begin from zero.
func (w *world) eraseSnapshots() {
	w.t.Helper()
	if err := snapshot.New(w.js).Erase(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func nothing() {}

// P10: a worker on another machine goes on from the snapshots of the one that left,
// reads only what came after them, and has the ledgers, byte by byte, that one has
// which reads everything; both go on to the same outcomes.
func TestFromSnapshotAndFromZero(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	const sessions, before, after = 24, 16, 4
	first := w.here("a", w.rounds(sessions, 1, before))
	first.await(t, 4)
	w.snapshotEvery = -1 // what follows leaves the snapshots as they are
	w.here("b", w.rounds(sessions, before, before+after))

	c := w.elsewhere("c", nothing)
	if len(c.restored) != 4 || c.replayed != sessions*after {
		t.Errorf("went on from the snapshots of %d partitions, and replayed %d events, not the %d behind them", len(c.restored), c.replayed, sessions*after)
	}
	w.rounds(sessions, before+after, before+2*after)()
	w.here("c", nothing)
	fromSnapshot := w.rows()

	w.eraseSnapshots()
	d := w.elsewhere("d", nothing)
	if len(d.restored) != 0 || d.replayed != sessions*(before+2*after-1) {
		t.Errorf("from zero %d events were replayed, and %d partitions restored", d.replayed, len(d.restored))
	}
	fromZero, different := w.rows(), 0
	if diff := cmp.Diff(fromZero, fromSnapshot); diff != "" {
		t.Errorf("ledgers from snapshots are not those from zero (-zero +snapshot):\n%s", diff)
		different = 1
	}
	w.wantAsLogSays()
	figures.Print(t, "P10", "from_snapshots", c.replayed, "from_zero", d.replayed, "rows", len(fromZero), "different", different)
}

// Snapshots are taken while turns come in. Whichever was the newest when the owner
// died without a word, the next one goes on from it as the log says.
func TestSnapshotsUnderLoad(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	w.snapshotEvery = 5 * time.Millisecond
	const sessions = 16
	taken := 0
	for i := range 4 {
		w.ledgers = t.TempDir()
		c := newCopied()
		stop := w.run(fmt.Sprint("a", i), c.listener())
		w.rounds(sessions, 1+6*i, 7+6*i)()
		c.await(t, 4)
		taken += len(c.stored)
		if i > 0 && len(c.restored) != 4 {
			t.Errorf("round %d: %d partitions went on from snapshots; said %v", i, len(c.restored), c.said)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	w.elsewhere("last", nothing)
	w.wantAsLogSays()
}

// A snapshot that does not fit is not used, whatever is wrong with it, and the
// partition is rebuilt from the log (P11).
func TestSnapshotNotUsed(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	const sessions = 8
	w.here("a", w.rounds(sessions, 1, 8))
	sound := w.newestSnapshot(0)
	other := withLedgers(t)
	other.here("x", other.rounds(sessions, 1, 8))
	foreign := other.newestSnapshot(0)
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
		"another log, hidden":  {"its metadata says", sound.Marker, foreign.data},
		"another partition":    {"its metadata says", sound.Marker, w.newestSnapshot(1).data},
		"another history":      {"has not begun", late, sound.data},
		"another chain":        {"not the one the outcomes were decided on", wrong, sound.data},
		"damaged when put":     {"damaged", sound.Marker, flipped},
		"cut short when put":   {"damaged", sound.Marker, sound.data[:len(sound.data)/2]},
		"empty":                {"empty", sound.Marker, nil},
		"another page's bytes": {"damaged", sound.Marker, append(sound.data[:8192:8192], sound.data[4096:]...)},
	} {
		w.putSnapshot(0, c.marker, sound.Outcomes, c.data)
		w.snapshotEvery = -1
		got := w.elsewhere(name, nothing)
		if _, used := got.restored[0]; used || len(got.said) == 0 || !strings.Contains(fmt.Sprint(got.said), c.reason) {
			t.Errorf("%s: used: %t; said: %v", name, used, got.said)
		}
		if len(got.restored) != 3 {
			t.Errorf("%s: %d other partitions went on from their snapshots", name, len(got.restored))
		}
	}
	w.wantAsLogSays()
}

// A snapshot that is older than what the log still holds is not used: the events
// between them are gone. One behind which nothing came is, however old.
func TestSnapshotBeforeTheLog(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	w.here("a", w.rounds(8, 1, 8))
	log, err := w.js.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	end := log.CachedInfo().State.LastSeq
	w.snapshotEvery = -1
	purge := func(seq uint64) {
		t.Helper()
		if err := log.Purge(t.Context(), jetstream.WithPurgeSequence(seq)); err != nil {
			t.Fatal(err)
		}
	}
	w.publish(events.KindTurn, "s0", agentTurn(0, 8)) // its partition's snapshot is behind now
	purge(end + 1)
	if c := w.elsewhere("b", nothing); len(c.restored) != 4 {
		t.Errorf("nothing is lost behind the snapshots, and %d of 4 were used; said %v", len(c.restored), c.said)
	}
	w.publish(events.KindTurn, "s0", agentTurn(0, 9))
	w.here("c", nothing)
	purge(end + 2)
	if c := w.elsewhere("d", nothing); len(c.restored) != 3 || !strings.Contains(fmt.Sprint(c.said), "the log begins at") {
		t.Errorf("%d snapshots were used, one of them before the log; said %v", len(c.restored), c.said)
	}
}

// A rebuild from zero keeps no more ledgers in memory than any other time allows
// (P14), also from a log whose beginning has aged away; one that was stopped in the
// middle goes on from there.
func TestRebuildIsBounded(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	const sessions, turns = 120, 6
	w.snapshotEvery = -1
	w.here("a", w.rounds(sessions, 1, 1+turns))
	want := w.rows()
	w.maxLedgers, w.checkpointEvents = 40, 10

	whole := w.elsewhere("b", nothing)
	if diff := cmp.Diff(want, w.rows()); diff != "" {
		t.Errorf("ledgers differ (-in one go +rebuilt in steps):\n%s", diff)
	}
	if whole.replayed != sessions*turns || whole.evicted < sessions {
		t.Errorf("%d events replayed, %d ledgers left memory", whole.replayed, whole.evicted)
	}

	w.ledgers = t.TempDir()
	reached, stopped := make(chan struct{}, 1), make(chan struct{})
	h := &watched{checkpointed: func(worker.Checkpointed) {
		select {
		case reached <- struct{}{}:
		default:
		}
		<-stopped
	}}
	r := w.start("c", h.listener())
	<-reached
	r.cancel()
	close(stopped)
	if err := <-r.done; err != nil {
		t.Error(err)
	}
	rest := w.here("d", nothing)
	if diff := cmp.Diff(want, w.rows()); diff != "" || rest.replayed >= sessions*turns || rest.replayed == 0 {
		t.Errorf("after a rebuild that was stopped %d events were replayed; ledgers differ:\n%s", rest.replayed, diff)
	}

	log, err := w.js.Stream(t.Context(), topology.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Purge(t.Context(), jetstream.WithPurgeSequence(sessions*2+1)); err != nil {
		t.Fatal(err)
	}
	aged := w.elsewhere("e", nothing)
	again := w.here("f", nothing)
	if len(aged.aside)+len(again.aside) > 0 || aged.replayed != sessions*(turns-2) || again.replayed != 0 {
		t.Errorf("from the rest of the log %d events were replayed, then %d; set aside %v %v", aged.replayed, again.replayed, aged.aside, again.aside)
	}
}

// An owner that has a file goes on from it, unless it is far behind.
func TestOwnFileFirst(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	w.here("a", w.rounds(8, 1, 6))
	own := w.ledgers
	w.elsewhere("b", w.rounds(8, 6, 12))
	w.ledgers = own
	if c := w.here("c", nothing); len(c.restored) != 0 || c.replayed != 8*6 {
		t.Errorf("%d partitions were restored and %d events replayed, with a file that is a little behind", len(c.restored), c.replayed)
	}
	w.wantAsLogSays()
}

// Before a partition changes hands its owner takes a snapshot when the next one would
// have much to replay, and only then.
func TestHandOverWithSnapshot(t *testing.T) {
	t.Parallel()
	for _, turns := range []int{100, 500} {
		t.Run(fmt.Sprint(turns), func(t *testing.T) {
			t.Parallel()
			w := openWorld(t, embedded.Config{Dir: t.TempDir()}, topology.Config{Partitions: 1})
			w.ledgers, w.checkpointEvery, w.checkpointEvents = t.TempDir(), time.Millisecond, 200
			stored := make(chan struct{})
			first := w.start("a", worker.Listener{Checkpointed: func(c worker.Checkpointed) {
				if int(c.Cursor) == turns {
					close(stored)
				}
			}})
			for i := range turns {
				a := events.Address{Tenant: events.DefaultTenant, Session: fmt.Sprint(i)}
				if _, err := w.js.PublishAsync(events.Published(events.KindTurn, a), []byte(`{"turn":1,"messages":[{"role":"user","content":"hello"}]}`)); err != nil {
					t.Fatal(err)
				}
			}
			<-stored
			w.ledgers = t.TempDir()
			c := newCopied()
			second := w.start("b", c.listener())
			if err := <-joined(second); err != nil {
				t.Fatal(err)
			}
			if err := first.stop(); err != nil { // where b has not got the partition already
				t.Fatal(err)
			}
			w.publish(events.KindTurn, "last", agentTurn(1, 1))
			w.settle()
			if err := second.stop(); err != nil {
				t.Fatal(err)
			}
			if used := c.restored[0] > 0; used != (turns >= w.checkpointEvents) {
				t.Errorf("after %d turns the next owner went on from a snapshot: %t", turns, used)
			}
			w.wantAsLogSays()
		})
	}
}

// joined says when a worker is a member, or why it is none.
func joined(r *running) <-chan error {
	out := make(chan error, 1)
	go func() {
		select {
		case <-r.worker.Ready():
			out <- nil
		case err := <-r.done:
			out <- fmt.Errorf("it ended: %w", err)
		}
	}()
	return out
}

// P11: whatever becomes of a snapshot in the store, what is told is what the log
// says.
func TestMutatedSnapshots(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	const sessions, mutations = 8, 16
	w.here("a", w.rounds(sessions, 1, 10))
	r := rand.New(rand.NewPCG(1, 3))
	w.snapshotEvery = -1
	sound := w.newestSnapshot(0)
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
		w.putSnapshot(0, sound.Marker, sound.Outcomes, data)
		c := w.elsewhere(fmt.Sprint(i), w.rounds(sessions, 10+i, 11+i))
		if _, ok := c.restored[0]; ok {
			used++
		}
	}
	if used == mutations {
		t.Error("no mutation did any harm: this test is blind")
	}
	w.wantAsLogSays()
	different := 0
	if t.Failed() {
		different = 1
	}
	figures.Print(t, "P11", "mutations", mutations, "not_used", mutations-used, "used", used, "different", different)
}

// E8: a session that was forgotten is in no snapshot, nor in what is left of older
// ones, though uploads go on all the while.
func TestForgetSnapshots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.ledgers, w.checkpointEvery, w.snapshotEvery = t.TempDir(), time.Millisecond, time.Millisecond
	c := newCopied()
	stop := w.run("a", c.listener())
	w.rounds(16, 1, 4)()
	w.publish(events.KindTurn, victim, secretTurn(1))
	w.settle()
	c.await(t, 4)
	store := storeOf(t, dir, "OBJ_"+topology.SnapshotsBucket)
	deadline := time.Now().Add(waitLimit)
	for n := 4; len(holders(t, victim, store)) == 0; n++ { // until the victim is in one
		if time.Now().After(deadline) {
			t.Fatal("the victim is in no snapshot: the test is blind")
		}
		w.rounds(16, n, n+1)()
	}
	w.forget(victim)
	for found := holders(t, victim, store, w.ledgers); len(found) > 0; found = holders(t, victim, store, w.ledgers) {
		if time.Now().After(deadline) { // the server removes files in the background
			t.Fatalf("the victim is in %q", found)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if found := holders(t, victim, store, w.ledgers); len(found) > 0 {
		t.Errorf("the victim came back, in %q", found)
	}
	w.elsewhere("b", nothing)
	w.wantAsLogSays()
}

// E8, P6: an owner that was frozen through a take-over and an erasure puts no snapshot
// of its own file into the store, and learns that it is no owner.
func TestStaleOwnerTakesNoSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir())
	w.ledgers, w.checkpointEvery, w.snapshotEvery = t.TempDir(), time.Millisecond, time.Millisecond
	w.leaseTTL = time.Hour // it does not look after its leases
	c, lost := newCopied(), make(chan error, 10)
	stop := w.run("a", worker.Tee(c.listener(), worker.Listener{PartitionReleased: func(e worker.PartitionReleased) { lost <- e.Err }}))
	for i := range 16 {
		w.publish(events.KindTurn, fmt.Sprintf("s%d", i), turn(1))
	}
	c.await(t, 4)
	for id := range w.streams.Partitions {
		claim := commit.Claim{Partition: id, Owner: "b", Config: w.config.Hash(), LogCreated: w.streams.Log.Created.UnixNano()}
		if _, _, err := commit.TakeOver(t.Context(), w.conn, claim); err != nil {
			t.Fatal(err)
		}
	}
	w.eraseSnapshots()
	for id := range w.streams.Partitions {
		if err := next(t, lost, "end of a partition"); !errors.Is(err, commit.ErrFenced) {
			t.Errorf("a partition ended with: %v", err)
		}
		if s, err := snapshot.New(w.js).Newest(t.Context(), id); !errors.Is(err, snapshot.ErrNone) {
			t.Errorf("there is a snapshot of partition %d: %+v, %v", id, s, err)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// storedSnapshot is a snapshot with its bytes.
type storedSnapshot struct {
	*snapshot.Snapshot
	data []byte
}

func (w *world) newestSnapshot(partition int) storedSnapshot {
	w.t.Helper()
	s := snapshot.New(w.js)
	newest, err := s.Newest(w.t.Context(), partition)
	if err != nil {
		w.t.Fatal(err)
	}
	var b strings.Builder
	if err := s.Read(w.t.Context(), newest, &b); err != nil {
		w.t.Fatal(err)
	}
	return storedSnapshot{Snapshot: newest, data: []byte(b.String())}
}

func (w *world) putSnapshot(partition int, m commit.Marker, outcomes uint64, data []byte) {
	w.t.Helper()
	u, err := snapshot.New(w.js).Begin(w.t.Context(), partition)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := u.Put(w.t.Context(), m, outcomes, strings.NewReader(string(data))); err != nil {
		w.t.Fatal(err)
	}
}
