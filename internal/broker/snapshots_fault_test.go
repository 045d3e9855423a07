//go:build faults

package broker

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"compactd/internal/reliability"
)

// In a cluster whose servers die and are cut off, the leader of the store among them,
// a snapshot comes back whole or its upload fails; a fenced one never takes the place
// of a newer one, and nothing piles up (P13, P6).
func TestFaultClusterSnapshots(t *testing.T) {
	w := newClusterWorld(t)
	s := NewSnapshots(w.js)
	stored, stale, different := 0, 0, 0
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
		newest, err := s.Newest(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := s.Read(ctx, newest, &got); err != nil || !bytes.Equal(got.Bytes(), body) || newest.Marker.Cursor != uint64(round) {
			t.Errorf("round %d: read %d bytes of the snapshot at %d: %v", round, got.Len(), newest.Marker.Cursor, err)
			different++
		}
		cancel()
	}
	single := &world{t: t, js: w.js}
	if n := single.chunks(1); n != 7 {
		t.Errorf("%d chunks are kept, not the 7 of the newest", n)
	}
	if err := s.Erase(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := single.chunks(1); n != 0 {
		t.Errorf("%d chunks are left after an erasure", n)
	}
	reliability.Print(t, "P13", "snapshots", stored, "stale", stale, "different", different)
}
