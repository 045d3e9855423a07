package worker_test

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
	"compactd/internal/worker"
)

// watched is what the listener of a worker with checkpoints received.
type watched struct {
	checkpointed func(worker.Checkpointed) // called under mu; may be nil

	mu                         sync.Mutex // guards the fields below
	replayed, written, evicted int
	aside                      []worker.Quarantined
	lost                       []error
}

func (h *watched) listener() worker.Listener {
	return worker.Listener{
		PartitionAcquired: func(a worker.PartitionAcquired) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.replayed += a.Replayed
		},
		PartitionFailed: func(l worker.PartitionFailed) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.lost = append(h.lost, l.Err)
		},
		PartitionReleased: func(l worker.PartitionReleased) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if l.Err != nil {
				h.lost = append(h.lost, l.Err)
			}
		},
		Checkpointed: func(c worker.Checkpointed) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.written++
			h.evicted += c.Evicted
			if h.checkpointed != nil {
				h.checkpointed(c)
			}
		},
		Quarantined: func(s worker.Quarantined) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.aside = append(h.aside, s)
		},
	}
}

// withLedgers is a world whose workers have checkpoints, and make them often.
func withLedgers(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, t.TempDir())
	w.ledgers, w.checkpointEvery = t.TempDir(), time.Millisecond
	return w
}

// serve runs a worker until all is decided that do publishes, then stops it.
func (w *world) serve(owner string, do func()) *watched {
	w.t.Helper()
	h := &watched{}
	w.serveAs(owner, h, do)
	return h
}

func (w *world) serveAs(owner string, h *watched, do func()) {
	w.t.Helper()
	stop := w.run(owner, h.listener())
	do()
	w.settle()
	if err := stop(); err != nil {
		w.t.Fatal(err)
	}
}

// rounds publishes turns from ≤ n < to of some sessions.
func (w *world) rounds(sessions, from, to int) func() {
	return func() {
		w.t.Helper()
		for n := from; n < to; n++ {
			for s := range sessions {
				w.publish(events.KindTurn, fmt.Sprintf("s%d", s), agentTurn(s%30, n))
			}
		}
	}
}

// A restart replays only what is behind the checkpoint, and decides as if there
// had been none.
func TestRestartFromCheckpoint(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	h := w.serve("a", w.rounds(12, 1, 12))
	if h.written < 4 {
		t.Errorf("%d checkpoints, want some of every partition", h.written)
	}
	if h = w.serve("b", w.rounds(12, 12, 14)); h.replayed != 0 {
		t.Errorf("after a stop in good order %d events were replayed", h.replayed)
	}
	ledgers := w.ledgers
	w.ledgers = "" // the next worker leaves the files where they are
	if h = w.serve("c", w.rounds(12, 14, 17)); h.replayed != 12*13 {
		t.Errorf("without a file %d events were replayed, not all %d", h.replayed, 12*13)
	}
	w.ledgers = ledgers
	if h = w.serve("d", w.rounds(12, 17, 30)); h.replayed != 12*3 {
		t.Errorf("%d events were replayed, not the %d behind the checkpoints", h.replayed, 12*3)
	}
	if len(h.aside) > 0 {
		t.Errorf("set aside: %v", h.aside)
	}
	w.wantAsLogSays()
}

// Every checkpoint is one to start from, also one that was taken while events and
// commits were coming in: with an old file the worker goes on as the log has it.
func TestAnyCheckpointWillDo(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	const sessions = 40
	files := map[int][]string{} // copies by partition
	h := &watched{}
	keep := t.TempDir()
	h.checkpointed = func(c worker.Checkpointed) { // nothing is written meanwhile
		to := filepath.Join(keep, fmt.Sprintf("p%d-%d.db", c.Partition, c.Cursor))
		copyFile(t, filepath.Join(w.ledgers, fmt.Sprintf("p%d.db", c.Partition)), to)
		files[c.Partition] = append(files[c.Partition], to)
	}
	w.serveAs("a", h, func() {
		for n := 1; n < 21; n++ {
			for s := range sessions {
				subject := events.Published(events.KindTurn, events.Address{Tenant: events.DefaultTenant, Session: fmt.Sprintf("s%d", s)})
				if _, err := w.js.PublishAsync(subject, agentTurn(s%30, n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		<-w.js.PublishAsyncComplete()
	})
	r := rand.New(rand.NewPCG(1, 1))
	trials, replayed := 4, 0
	for i := range trials {
		for p, all := range files {
			copyFile(t, all[r.IntN(len(all))], filepath.Join(w.ledgers, fmt.Sprintf("p%d.db", p)))
		}
		h := w.serve(fmt.Sprint("b", i), w.rounds(sessions, 21+2*i, 23+2*i))
		if len(h.aside) > 0 {
			t.Errorf("set aside: %v", h.aside)
		}
		replayed += h.replayed
	}
	copies := 0
	for _, all := range files {
		copies += len(all)
	}
	fmt.Printf("checkpoints: %d under load, %d starts from them, %d events replayed\n", copies, trials, replayed)
	if replayed == 0 {
		t.Error("nothing was behind the checkpoints")
	}
	w.wantAsLogSays()
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

// Ledgers that leave memory come back as they were, whether they are too many or too
// large (P14).
func TestLedgersLeaveMemory(t *testing.T) {
	t.Parallel()
	t.Run("many", func(t *testing.T) {
		t.Parallel()
		w := withLedgers(t)
		w.maxLedgers = 8
		w.wantLedgersLeave(150)
	})
	t.Run("large", func(t *testing.T) {
		t.Parallel()
		w := withLedgers(t)
		w.maxLedgerBytes = 64 << 10
		w.wantLedgersLeave(150)
	})
}

// Ledgers that changed leave memory too, however seldom checkpoints are due; and one
// that alone is larger than all may be holds up no other (P14).
func TestCrowdedLedgersLeaveMemory(t *testing.T) {
	t.Parallel()
	for sessions, rounds := range map[int]int{150: 12, 1: 450} {
		w := withLedgers(t)
		w.checkpointEvery, w.maxLedgerBytes = time.Hour, 4<<10
		h := w.serve("a", w.rounds(sessions, 1, 1+rounds))
		if h.evicted < sessions {
			t.Errorf("of %d sessions %d ledgers left memory", sessions, h.evicted)
		}
		w.wantAsLogSays()
	}
}

func (w *world) wantLedgersLeave(sessions int) {
	t := w.t
	t.Helper()
	evicted := 0
	for i := range 3 {
		h := w.serve(fmt.Sprint(i), w.rounds(sessions, 1+3*i, 4+3*i))
		evicted += h.evicted
	}
	fmt.Printf("ledgers: %d sessions, at most %d, or %d bytes, in memory, %d left it\n", sessions, w.maxLedgers, w.maxLedgerBytes, evicted)
	if evicted < 2*sessions {
		t.Errorf("only %d ledgers left memory", evicted)
	}
	w.wantAsLogSays()
}

// A file that is damaged, of another log, or ahead of the marker is quarantined, and
// the ledgers follow from the log.
func TestLedgerFileSetAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.rounds(8, 1, 10)()
	w.stop()
	early := copyOf(t, dir) // nothing is decided there
	w = newWorld(t, dir)
	w.ledgers, w.checkpointEvery = t.TempDir(), time.Millisecond
	w.serve("a", func() {})

	other := withLedgers(t)
	other.serve("x", other.rounds(8, 1, 4))

	file := filepath.Join(w.ledgers, "p0.db")
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
		{"another log", "another stream", func() { copyFile(t, filepath.Join(other.ledgers, "p0.db"), file) }},
		{"another partition", "another partition", func() { copyFile(t, filepath.Join(w.ledgers, "p1.db"), file) }},
	} {
		c.spoil()
		h := w.serve(c.name, w.rounds(8, 10+i, 11+i))
		if len(h.aside) != 1 || h.aside[0].Partition != 0 || !strings.Contains(h.aside[0].Reason.Error(), c.reason) {
			t.Errorf("%s: set aside: %v", c.name, h.aside)
		} else if _, err := os.Stat(h.aside[0].Moved); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		w.wantAsLogSays()
	}

	behind := newWorld(t, early)
	behind.ledgers, behind.checkpointEvery = w.ledgers, w.checkpointEvery
	h := behind.serve("early", behind.rounds(8, 10, 14))
	if len(h.aside) != 4 || !strings.Contains(h.aside[0].Reason.Error(), "and the marker at 0") {
		t.Errorf("ahead of the marker: set aside: %v", h.aside)
	}
	behind.wantAsLogSays()
}

// A ledger that is whole as a row and makes no sense is found while events are
// replayed, or decided: the file is quarantined, and the partition goes on.
func TestStoredLedgerMakesNoSense(t *testing.T) {
	t.Parallel()
	for _, replayed := range []bool{true, false} {
		t.Run(fmt.Sprint("replayed=", replayed), func(t *testing.T) {
			t.Parallel()
			w := withLedgers(t)
			w.serve("a", w.rounds(8, 1, 5))
			if replayed {
				ledgers := w.ledgers
				w.ledgers = ""
				w.serve("b", w.rounds(8, 5, 6))
				w.ledgers = ledgers
			}
			for p := range w.streams.Partitions {
				s := w.openLedgers(p, false)
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
			h := w.serve("c", w.rounds(8, 6, 8))
			if len(h.aside) == 0 || len(h.lost) != len(h.aside) {
				t.Errorf("set aside: %v; lost: %v", h.aside, h.lost)
			}
			w.wantAsLogSays()
		})
	}
}

// openLedgers opens a file that no worker has open.
func (w *world) openLedgers(partition int, readOnly bool) *kv.Store {
	w.t.Helper()
	s, aside, err := kv.Open(kv.Options{
		Path:      filepath.Join(w.ledgers, fmt.Sprintf("p%d.db", partition)),
		Partition: partition, Partitions: w.streams.Partitions, ReadOnly: readOnly,
	})
	if err != nil || aside != nil {
		w.t.Fatalf("open ledgers of partition %d: %v, %v", partition, aside, err)
	}
	return s
}

// P11, end to end: whatever becomes of a ledger file between two starts, and while
// it is in use, what is published is what the log contains.
func TestMutatedLedgerFiles(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	w.maxLedgers = 8
	const sessions, mutations = 12, 60
	w.serve("a", w.rounds(sessions, 1, 10))
	r := rand.New(rand.NewPCG(1, 2))
	var olds [4]string
	keep := t.TempDir()
	for p := range olds {
		olds[p] = filepath.Join(keep, fmt.Sprint(p))
		copyFile(t, filepath.Join(w.ledgers, fmt.Sprintf("p%d.db", p)), olds[p])
	}
	w.serve("b", w.rounds(sessions, 10, 12))
	aside, done := 0, 0
	round := 12
	for done < mutations {
		for p := range 3 { // the fourth is left alone
			mutateFile(t, r, filepath.Join(w.ledgers, fmt.Sprintf("p%d.db", p)), olds[p])
			done++
		}
		h := w.serve(fmt.Sprint(done), w.rounds(sessions, round, round+1))
		aside += len(h.aside)
		round++
	}
	fmt.Printf("ledger files: %d mutations, %d set aside, %d used\n", done, aside, done-aside)
	if aside == 0 || aside == done {
		t.Error("the mutations are all of one kind")
	}
	w.wantAsLogSays()
}

// mutateFile flips bits, clears pages, truncates, puts pages or the whole file
// back as they were.
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

// A file that is damaged while a worker has it open is quarantined under way.
func TestLedgerFileDamagedInUse(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	w.maxLedgers = 4
	h := w.serve("a", func() {
		w.rounds(40, 1, 6)()
		w.settle()
		for p := range w.streams.Partitions {
			f, err := os.OpenFile(filepath.Join(w.ledgers, fmt.Sprintf("p%d.db", p)), os.O_RDWR, 0)
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
		w.rounds(40, 6, 12)()
	})
	if len(h.aside) == 0 {
		t.Error("nobody noticed")
	}
	w.wantAsLogSays()
}

// A session that begins again begins again on file.
func TestSessionResetOnFile(t *testing.T) {
	t.Parallel()
	w := openWorld(t, embedded.Config{Dir: t.TempDir(), MaxPayload: 1 << 20}, topology.Config{Partitions: 1})
	w.ledgers, w.checkpointEvery = t.TempDir(), time.Millisecond
	stored := func() bool {
		s := w.openLedgers(0, true)
		defer s.Close()
		rows, err := s.Load(events.Address{Tenant: events.DefaultTenant, Session: "hostile"})
		if err != nil {
			t.Fatal(err)
		}
		return rows != nil
	}
	turn := func(n int, policy string) {
		w.publish(events.KindTurn, "hostile", unwieldyTurn(n, policy))
		w.publish(events.KindTurn, "good", bigTurn(n, 10_000, 12_000))
	}
	w.serve("a", func() { turn(1, `{"enabled":false}`) })
	if !stored() {
		t.Fatal("the session is not on file")
	}
	w.serve("b", func() { turn(2, `{"prune":{"protect_tokens":0,"minimum_tokens":0},"truncate":{"enabled":false}}`) })
	if stored() {
		t.Error("the session is still on file")
	}
	w.serve("c", func() {
		w.publish(events.KindTurn, "hostile", []byte(`{"turn":3,"messages":[]}`))
		w.publish(events.KindTurn, "hostile", []byte(`{"replaces_from":1,"messages":[{"role":"user","content":"sorry"}]}`))
	})
	if !stored() {
		t.Error("the session that began anew is not on file")
	}
	w.serve("d", func() { w.publish(events.KindTurn, "good", bigTurn(3, 10_000, 12_000)) })
	w.wantAsLogSays()
	if told := w.stored()["out.0.rejected.default.hostile"]; len(told) < 2 || !strings.Contains(told[0], "session_reset") || !strings.Contains(told[1], "turn_gap") {
		t.Errorf("the session was told %q", told)
	}
}

// A worker that is stopped while it starts leaves its files as they are: what
// cannot be read is not lost.
func TestStopWhileOpening(t *testing.T) {
	t.Parallel()
	w := withLedgers(t)
	w.serve("a", w.rounds(24, 1, 8))
	h := &watched{}
	for i := range 60 {
		r := w.start(fmt.Sprint("b", i), h.listener())
		pause(t, time.Duration(i)*200*time.Microsecond)
		_ = r.stop() // an error is what a stop at a bad time may be
	}
	w.serve("c", w.rounds(24, 8, 14))
	if len(h.aside) > 0 {
		t.Errorf("%d files set aside, the first: %v", len(h.aside), h.aside[0])
	}
	w.wantAsLogSays()
}
