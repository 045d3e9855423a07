//go:build faults

package broker

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"compactd/internal/testkit/figures"
)

// In a cluster whose servers die and are cut off, the leader of the store among them,
// a snapshot comes back whole or its upload fails; a fenced one never takes the place
// of a newer one, and nothing piles up (P13, P6).
func TestFaultClusterSnapshots(t *testing.T) {
	w := newClusterWorld(t)
	s := NewSnapshots(w.js)
	stored, stale, different, again := 0, 0, 0, 0
	for round := range 6 {
		i := w.cluster.Leader(t.Context(), w.js, snapshotsStream)
		lose, back := w.cluster.Kill, w.cluster.Restart
		if round%2 == 1 {
			lose, back = w.cluster.Cut, w.cluster.Heal
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		body := bodyOf(uint64(round), 6*chunkBytes+round)
		frozen, err := s.Begin(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Begin(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		lost := make(chan struct{})
		go func() { lose(i); close(lost) }()
		if err := u.Put(ctx, Marker{Cursor: uint64(round), Epoch: 2}, 0, bytes.NewReader(body)); err != nil {
			t.Fatal(err)
		}
		stored++
		if err := frozen.Put(ctx, Marker{Epoch: 1}, 0, bytes.NewReader(bodyOf(99, 3*chunkBytes))); !errors.Is(err, ErrSnapshotMoved) {
			t.Errorf("round %d: a frozen owner's upload: %v", round, err)
			stale++
		}
		<-lost
		back(i)
		w.awaitReplicas()
		at, got, tries := readWhole(ctx, t, s)
		if !bytes.Equal(got, body) || at != uint64(round) {
			t.Errorf("round %d: read %d bytes of the snapshot at %d", round, len(got), at)
			different++
		}
		again += tries - 1
		cancel()
	}
	single := &env{t: t, js: w.js}
	if n := single.chunks(1); n != 7 {
		t.Errorf("%d chunks are kept, not the 7 of the newest", n)
	}
	if err := s.Erase(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := single.chunks(1); n != 0 {
		t.Errorf("%d chunks are left after an erasure", n)
	}
	figures.Print(t, "P13", "snapshots", stored, "stale", stale, "different", different, "read_again", again)
}

// readWhole reads the newest snapshot as a worker does: what seems to be gone while
// servers catch up is asked for again.
func readWhole(ctx context.Context, t *testing.T, s *Snapshots) (cursor uint64, data []byte, tries int) {
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
		if !errors.Is(err, ErrSnapshotGone) {
			t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}
