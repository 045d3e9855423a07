//go:build faults

package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"compactd/internal/broker/brokertest"
	"compactd/internal/broker/commit"
	"compactd/internal/broker/snapshot"
	"compactd/internal/broker/topology"
	"compactd/internal/testkit/cluster"
	"compactd/internal/testkit/figures"
)

// In a cluster whose servers crash and are cut off, the leader of the store among them, a
// snapshot comes back whole or its upload fails and is tried again; a fenced one never takes the place
// of a newer one, and nothing piles up (P13, P6).
func TestFaultClusterSnapshots(t *testing.T) {
	w := cluster.StartStreams(t)
	s := snapshot.New(w.JS)
	stored, failed, stale, different, again := 0, 0, 0, 0, 0
	for round := range 6 {
		i := w.Leader(t.Context(), w.JS, topology.SnapshotsStream)
		lose, back := w.Kill, w.Restart
		if round%2 == 1 {
			lose, back = w.Cut, w.Heal
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		body := brokertest.Payload(uint64(round), 6*chunkBytes+round)
		frozen, err := s.Begin(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		current, err := s.Begin(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		lost := make(chan struct{})
		go func() { lose(i); close(lost) }()
		for err = current.Put(ctx, commit.Marker{Cursor: uint64(round), Epoch: 2}, 0, bytes.NewReader(body)); err != nil; failed++ {
			t.Logf("round %d: upload again: %v", round, err)
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			if current, err = s.Begin(ctx, 1); err == nil {
				err = current.Put(ctx, commit.Marker{Cursor: uint64(round), Epoch: 2}, 0, bytes.NewReader(body))
			}
		}
		stored++
		if err := frozen.Put(ctx, commit.Marker{Epoch: 1}, 0, bytes.NewReader(brokertest.Payload(99, 3*chunkBytes))); !errors.Is(err, snapshot.ErrMoved) {
			t.Errorf("round %d: a frozen owner's upload: %v", round, err)
			stale++
		}
		<-lost
		back(i)
		w.AwaitReplicas()
		at, got, tries := readWhole(ctx, t, s)
		if !bytes.Equal(got, body) || at != uint64(round) {
			t.Errorf("round %d: read %d bytes of the snapshot at %d", round, len(got), at)
			different++
		}
		again += tries - 1
		cancel()
	}
	if n := chunks(t, w.JS); n != 7 {
		t.Errorf("%d chunks are kept, not the 7 of the newest", n)
	}
	if err := s.Erase(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := chunks(t, w.JS); n != 0 {
		t.Errorf("%d chunks are left after an erasure", n)
	}
	figures.Print(t, "P13", "snapshots", stored, "uploads_failed", failed, "stale", stale, "different", different, "read_again", again)
}

// chunkBytes is how much of a snapshot one message holds.
const chunkBytes = 512 << 10

// chunks counts what the store holds of all snapshots.
func chunks(t *testing.T, js jetstream.JetStream) (n uint64) {
	t.Helper()
	s, err := js.Stream(t.Context(), topology.SnapshotsStream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("$O."+topology.SnapshotsBucket+".C.>"))
	if err != nil {
		t.Fatal(err)
	}
	for _, messages := range info.State.Subjects {
		n += messages
	}
	return n
}

// readWhole reads the newest snapshot as a worker does: what seems to be gone while
// servers catch up is read again.
func readWhole(ctx context.Context, t *testing.T, s *snapshot.Store) (cursor uint64, data []byte, tries int) {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		tries++
		newest, err := s.Newest(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err = s.Read(ctx, newest, &got); err == nil {
			return newest.Marker.Cursor, got.Bytes(), tries
		}
		if !errors.Is(err, snapshot.ErrGone) {
			t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}
