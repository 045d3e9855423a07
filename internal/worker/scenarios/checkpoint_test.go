package scenarios_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"compactd/internal/broker/embedded"
	"compactd/internal/broker/topology"
	"compactd/internal/compaction"
	"compactd/internal/events"
	"compactd/internal/kv"
	"compactd/internal/testkit/workertest"
	"compactd/internal/worker/observe"
)

// ledgerEvents counts what the listener of a worker receives about ledgers and their files.
type ledgerEvents struct {
	checkpointed func(observe.Checkpointed) // called under mu; may be nil

	mu                             sync.Mutex // guards the fields below
	replayed, checkpoints, evicted int
	quarantined                    []observe.Quarantined
	failed                         []error
}

func (seen *ledgerEvents) listener() observe.Listener {
	return observe.Listener{
		PartitionAcquired: func(a observe.PartitionAcquired) {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.replayed += a.Replayed
		},
		PartitionFailed: func(l observe.PartitionFailed) {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.failed = append(seen.failed, l.Err)
		},
		PartitionReleased: func(l observe.PartitionReleased) {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			if l.Err != nil {
				seen.failed = append(seen.failed, l.Err)
			}
		},
		Checkpointed: func(c observe.Checkpointed) {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.checkpoints++
			seen.evicted += c.Evicted
			if seen.checkpointed != nil {
				seen.checkpointed(c)
			}
		},
		Quarantined: func(s observe.Quarantined) {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.quarantined = append(seen.quarantined, s)
		},
	}
}

// withLedgers returns an environment whose workers write checkpoints, and often.
func withLedgers(t *testing.T) *workertest.Env {
	t.Helper()
	env := workertest.New(t, t.TempDir())
	env.Ledgers, env.CheckpointEvery = t.TempDir(), time.Millisecond
	return env
}

// serve runs a worker until everything that do publishes is decided, then stops it.
func serve(env *workertest.Env, owner string, do func()) *ledgerEvents {
	env.T.Helper()
	seen := &ledgerEvents{}
	serveAs(env, owner, seen, do)
	return seen
}

func serveAs(env *workertest.Env, owner string, seen *ledgerEvents, do func()) {
	env.T.Helper()
	stop := env.Run(owner, seen.listener())
	do()
	env.AwaitDecided()
	stop()
}

// publishRounds publishes turns from ≤ n < to of some sessions.
func publishRounds(env *workertest.Env, sessions, from, to int) func() {
	return func() {
		env.T.Helper()
		for n := from; n < to; n++ {
			for s := range sessions {
				env.Publish(events.KindTurn, fmt.Sprintf("s%d", s), agentTurn(s%30, n))
			}
		}
	}
}

// A restart replays only the events after the checkpoint, and decides as if there had been
// no restart.
func TestRestartFromCheckpoint(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	seen := serve(env, "a", publishRounds(env, 12, 1, 12))
	if seen.checkpoints < 4 {
		t.Errorf("%d checkpoints, want some of every partition", seen.checkpoints)
	}
	if seen = serve(env, "b", publishRounds(env, 12, 12, 14)); seen.replayed != 0 {
		t.Errorf("after a stop in good order %d events were replayed", seen.replayed)
	}
	ledgers := env.Ledgers
	env.Ledgers = "" // the next worker leaves the files where they are
	if seen = serve(env, "c", publishRounds(env, 12, 14, 17)); seen.replayed != 12*13 {
		t.Errorf("without a file %d events were replayed, not all %d", seen.replayed, 12*13)
	}
	env.Ledgers = ledgers
	if seen = serve(env, "d", publishRounds(env, 12, 17, 30)); seen.replayed != 12*3 {
		t.Errorf("%d events were replayed, not the %d behind the checkpoints", seen.replayed, 12*3)
	}
	if len(seen.quarantined) > 0 {
		t.Errorf("quarantined: %v", seen.quarantined)
	}
	env.WantRedecided()
}

// A worker can start from any checkpoint, also from one that was taken while events arrived
// and commits were under way: from an old file it continues as the log has it.
func TestAnyCheckpointWillDo(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	const sessions = 40
	files := map[int][]string{} // copies by partition
	seen := &ledgerEvents{}
	keep := t.TempDir()
	seen.checkpointed = func(c observe.Checkpointed) { // nothing is written meanwhile
		to := filepath.Join(keep, fmt.Sprintf("p%d-%d.db", c.Partition, c.Cursor))
		copyFile(t, filepath.Join(env.Ledgers, fmt.Sprintf("p%d.db", c.Partition)), to)
		files[c.Partition] = append(files[c.Partition], to)
	}
	serveAs(env, "a", seen, func() {
		for n := 1; n < 21; n++ {
			for s := range sessions {
				subject := events.Published(events.KindTurn, events.Address{Tenant: events.DefaultTenant, Session: fmt.Sprintf("s%d", s)})
				if _, err := env.JS.PublishAsync(subject, agentTurn(s%30, n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		<-env.JS.PublishAsyncComplete()
	})
	r := rand.New(rand.NewPCG(1, 1))
	trials, replayed := 4, 0
	for i := range trials {
		for p, all := range files {
			copyFile(t, all[r.IntN(len(all))], filepath.Join(env.Ledgers, fmt.Sprintf("p%d.db", p)))
		}
		seen := serve(env, fmt.Sprint("b", i), publishRounds(env, sessions, 21+2*i, 23+2*i))
		if len(seen.quarantined) > 0 {
			t.Errorf("quarantined: %v", seen.quarantined)
		}
		replayed += seen.replayed
	}
	copies := 0
	for _, all := range files {
		copies += len(all)
	}
	fmt.Printf("checkpoints: %d under load, %d starts from them, %d events replayed\n", copies, trials, replayed)
	if replayed == 0 {
		t.Error("no event came after the checkpoints: the test shows nothing")
	}
	env.WantRedecided()
}

func copyFile(t *testing.T, from, to string) {
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

// Ledgers are evicted when they are too many or too large, and loaded again as they were (P14).
func TestLedgersLeaveMemory(t *testing.T) {
	t.Parallel()
	t.Run("many", func(t *testing.T) {
		t.Parallel()
		env := withLedgers(t)
		env.MaxLedgers = 8
		wantLedgersLeave(env, 150)
	})
	t.Run("large", func(t *testing.T) {
		t.Parallel()
		env := withLedgers(t)
		env.MaxLedgerBytes = 64 << 10
		wantLedgersLeave(env, 150)
	})
}

// Changed ledgers are evicted too, however rarely checkpoints are due. A ledger that alone is
// larger than the limit delays no other (P14).
func TestChangedLedgersLeaveMemory(t *testing.T) {
	t.Parallel()
	for sessions, rounds := range map[int]int{150: 12, 1: 450} {
		env := withLedgers(t)
		env.CheckpointEvery, env.MaxLedgerBytes = time.Hour, 4<<10
		seen := serve(env, "a", publishRounds(env, sessions, 1, 1+rounds))
		if seen.evicted < sessions {
			t.Errorf("of %d sessions %d ledgers left memory", sessions, seen.evicted)
		}
		env.WantRedecided()
	}
}

func wantLedgersLeave(env *workertest.Env, sessions int) {
	t := env.T
	t.Helper()
	evicted := 0
	for i := range 3 {
		seen := serve(env, fmt.Sprint(i), publishRounds(env, sessions, 1+3*i, 4+3*i))
		evicted += seen.evicted
	}
	fmt.Printf("ledgers: %d sessions, at most %d, or %d bytes, in memory, %d left it\n", sessions, env.MaxLedgers, env.MaxLedgerBytes, evicted)
	if evicted < 2*sessions {
		t.Errorf("only %d ledgers left memory", evicted)
	}
	env.WantRedecided()
}

// A file that is damaged, belongs to another log, or is ahead of the marker is quarantined,
// and the ledgers are rebuilt from the log.
func TestLedgerFileQuarantined(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := workertest.New(t, dir)
	publishRounds(env, 8, 1, 10)()
	env.Stop()
	early := copyDir(t, dir) // nothing is decided there
	env = workertest.New(t, dir)
	env.Ledgers, env.CheckpointEvery = t.TempDir(), time.Millisecond
	serve(env, "a", func() {})

	other := withLedgers(t)
	serve(other, "x", publishRounds(other, 8, 1, 4))

	file := filepath.Join(env.Ledgers, "p0.db")
	for i, c := range []struct {
		name, reason string
		spoil        func()
	}{
		{"flipped bytes", "damaged", func() {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for at := 3*4096 + 20; at < len(data); at += 512 {
				data[at] ^= 0x55
			}
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"another log", "another stream", func() { copyFile(t, filepath.Join(other.Ledgers, "p0.db"), file) }},
		{"another partition", "another partition", func() { copyFile(t, filepath.Join(env.Ledgers, "p1.db"), file) }},
	} {
		c.spoil()
		seen := serve(env, c.name, publishRounds(env, 8, 10+i, 11+i))
		if len(seen.quarantined) != 1 || seen.quarantined[0].Partition != 0 || !strings.Contains(seen.quarantined[0].Reason.Error(), c.reason) {
			t.Errorf("%s: quarantined: %v", c.name, seen.quarantined)
		} else if _, err := os.Stat(seen.quarantined[0].Moved); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		env.WantRedecided()
	}

	behind := workertest.New(t, early)
	behind.Ledgers, behind.CheckpointEvery = env.Ledgers, env.CheckpointEvery
	seen := serve(behind, "early", publishRounds(behind, 8, 10, 14))
	if len(seen.quarantined) != 4 || !strings.Contains(seen.quarantined[0].Reason.Error(), "and the marker at 0") {
		t.Errorf("ahead of the marker: quarantined: %v", seen.quarantined)
	}
	behind.WantRedecided()
}

// A ledger whose checksum is right and whose content is invalid is found when events are
// replayed or decided. The file is quarantined, and the partition continues.
func TestStoredLedgerIsInvalid(t *testing.T) {
	t.Parallel()
	for _, replayed := range []bool{true, false} {
		t.Run(fmt.Sprint("replayed=", replayed), func(t *testing.T) {
			t.Parallel()
			env := withLedgers(t)
			serve(env, "a", publishRounds(env, 8, 1, 5))
			if replayed {
				ledgers := env.Ledgers
				env.Ledgers = ""
				serve(env, "b", publishRounds(env, 8, 5, 6))
				env.Ledgers = ledgers
			}
			for p := range env.Streams.Partitions.Count() {
				s := openLedgers(env, p, false)
				for n := range 8 {
					a := events.Address{Tenant: events.DefaultTenant, Session: fmt.Sprintf("s%d", n)}
					rows, err := s.Load(a)
					if err != nil {
						t.Fatal(err)
					}
					if rows == nil {
						continue
					}
					if err := s.Checkpoint(s.Position(), []kv.Change{{Address: a, Rows: []compaction.Row{{Name: "h", Data: []byte("{")}}}}); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			seen := serve(env, "c", publishRounds(env, 8, 6, 8))
			if len(seen.quarantined) == 0 || len(seen.failed) != len(seen.quarantined) {
				t.Errorf("quarantined: %v; failed: %v", seen.quarantined, seen.failed)
			}
			env.WantRedecided()
		})
	}
}

// openLedgers opens a file that no worker has open.
func openLedgers(env *workertest.Env, partition int, readOnly bool) *kv.Store {
	env.T.Helper()
	s, quarantined, err := kv.Open(kv.Options{
		Path:      filepath.Join(env.Ledgers, fmt.Sprintf("p%d.db", partition)),
		Partition: partition, Partitions: env.Streams.Partitions.Count(), ReadOnly: readOnly,
	})
	if err != nil || quarantined != nil {
		env.T.Fatalf("open ledgers of partition %d: %v, %v", partition, quarantined, err)
	}
	return s
}

// P11, end to end: whatever damage a ledger file takes between two starts, the published
// outcomes are those that follow from the log.
func TestMutatedLedgerFiles(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	env.MaxLedgers = 8
	const sessions, mutations = 12, 60
	serve(env, "a", publishRounds(env, sessions, 1, 10))
	r := rand.New(rand.NewPCG(1, 2))
	var olds [4]string
	keep := t.TempDir()
	for p := range olds {
		olds[p] = filepath.Join(keep, fmt.Sprint(p))
		copyFile(t, filepath.Join(env.Ledgers, fmt.Sprintf("p%d.db", p)), olds[p])
	}
	serve(env, "b", publishRounds(env, sessions, 10, 12))
	quarantined, done := 0, 0
	round := 12
	for done < mutations {
		for p := range 3 { // the fourth is left alone
			mutateFile(t, r, filepath.Join(env.Ledgers, fmt.Sprintf("p%d.db", p)), olds[p])
			done++
		}
		seen := serve(env, fmt.Sprint(done), publishRounds(env, sessions, round, round+1))
		quarantined += len(seen.quarantined)
		round++
	}
	fmt.Printf("ledger files: %d mutations, %d quarantined, %d used\n", done, quarantined, done-quarantined)
	if quarantined == 0 || quarantined == done {
		t.Error("of the mutated files all or none were quarantined: the test shows nothing")
	}
	env.WantRedecided()
}

// mutateFile flips a bit, clears a page, truncates the file, or restores pages or the whole
// file from an older copy.
func mutateFile(t *testing.T, r *rand.Rand, path, old string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	at := r.IntN(len(data)/page) * page
	switch r.IntN(6) {
	case 0:
		data[at+r.IntN(page)] ^= 1 << r.IntN(8)
	case 1:
		clear(data[at : at+page])
	case 2:
		data = data[:r.IntN(len(data))]
	case 3:
		if at < len(was) {
			copy(data[at:at+page], was[at:])
		}
	case 4:
		copy(data[:2*page], was) // meta pages
	default:
		data = was
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file that is damaged while a worker has it open is quarantined while the worker runs.
func TestLedgerFileDamagedInUse(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	env.MaxLedgers = 4
	seen := serve(env, "a", func() {
		publishRounds(env, 40, 1, 6)()
		env.AwaitDecided()
		for p := range env.Streams.Partitions.Count() {
			f, err := os.OpenFile(filepath.Join(env.Ledgers, fmt.Sprintf("p%d.db", p)), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			for at := int64(2*4096 + 100); at < info.Size(); at += 256 {
				if _, err := f.WriteAt([]byte{0xa5}, at); err != nil {
					t.Fatal(err)
				}
			}
			f.Close()
		}
		publishRounds(env, 40, 6, 12)()
	})
	if len(seen.quarantined) == 0 {
		t.Error("the damage was not noticed")
	}
	env.WantRedecided()
}

// A session that was reset is removed from its file, and stored again once it has a new history.
func TestSessionResetOnFile(t *testing.T) {
	t.Parallel()
	env := workertest.Open(t, embedded.Config{Dir: t.TempDir(), MaxPayload: 1 << 20}, topology.Config{Partitions: 1})
	env.Ledgers, env.CheckpointEvery = t.TempDir(), time.Millisecond
	stored := func() bool {
		s := openLedgers(env, 0, true)
		defer s.Close()
		rows, err := s.Load(events.Address{Tenant: events.DefaultTenant, Session: "hostile"})
		if err != nil {
			t.Fatal(err)
		}
		return rows != nil
	}
	serve(env, "a", func() {
		for n := 1; n < unwieldy; n++ {
			env.Publish(events.KindTurn, "hostile", unwieldyTurn(n, collecting))
		}
		env.Publish(events.KindTurn, "good", workertest.BigTurn(1, 10_000, 12_000))
	})
	if !stored() {
		t.Fatal("the session is not on file")
	}
	serve(env, "b", func() {
		env.Publish(events.KindTurn, "hostile", unwieldyTurn(unwieldy, clearsUnwieldy))
		env.Publish(events.KindTurn, "good", workertest.BigTurn(2, 10_000, 12_000))
	})
	if stored() {
		t.Error("the session is still on file")
	}
	serve(env, "c", func() {
		env.Publish(events.KindTurn, "hostile", fmt.Appendf(nil, `{"turn":%d,"messages":[]}`, unwieldy+1))
		env.Publish(events.KindTurn, "hostile", []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"sorry"}]}`))
	})
	if !stored() {
		t.Error("the session with a new history is not on file")
	}
	serve(env, "d", func() { env.Publish(events.KindTurn, "good", workertest.BigTurn(3, 10_000, 12_000)) })
	env.WantRedecided()
	if rejections := env.Stored()["out.0.rejected.default.hostile"]; len(rejections) < 2 || !strings.Contains(rejections[0], "session_reset") || !strings.Contains(rejections[1], "turn_gap") {
		t.Errorf("rejections of the session: %q", rejections)
	}
}

// A worker that is stopped while it starts leaves its files as they are, and quarantines none.
func TestStopWhileOpening(t *testing.T) {
	t.Parallel()
	env := withLedgers(t)
	serve(env, "a", publishRounds(env, 24, 1, 8))
	seen := &ledgerEvents{}
	for i := range 60 {
		r := env.Start(fmt.Sprint("b", i), seen.listener())
		workertest.Pause(t, time.Duration(i)*200*time.Microsecond)
		_ = r.End() // a stop during the start may return an error
	}
	serve(env, "c", publishRounds(env, 24, 8, 14))
	if len(seen.quarantined) > 0 {
		t.Errorf("%d files quarantined, the first: %v", len(seen.quarantined), seen.quarantined[0])
	}
	env.WantRedecided()
}
