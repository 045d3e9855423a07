package kv

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"

	"compactd/internal/compaction"
	"compactd/internal/events"
)

// half is a store with one ledger, and changes that touch it and another.
func half(t *testing.T) (Options, *Store, model, []Change) {
	o := options(t)
	s := mustOpen(t, o)
	checkpoint(t, s, positionAt(1), Change{Address: address("a"), Rows: []compaction.Row{row("head", "A")}})
	return o, s, model{address("a"): {"head": "A"}}, []Change{
		{Address: address("a"), Rows: []compaction.Row{row("head", "A2"), row("c0", "x")}},
		{Address: address("b"), Rows: []compaction.Row{row("head", "B")}},
	}
}

// A commit that fails leaves the store as it was, and the next one works.
func TestCommitFails(t *testing.T) {
	_, s, m, changes := half(t)
	defer s.Abandon()
	s.commit = func(tx *bolt.Tx) error { return errors.Join(tx.Rollback(), fmt.Errorf("write: %w", syscall.ENOSPC)) }
	err := s.Checkpoint(positionAt(2), changes)
	if w, ok := errors.AsType[*WriteError](err); !ok || !w.Full || !errors.Is(err, ErrFull) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v", err)
	}
	check(t, s, positionAt(1), m)
	s.commit = func(tx *bolt.Tx) error { return errors.Join(tx.Rollback(), syscall.EIO) }
	if err := s.Checkpoint(positionAt(2), changes); errors.Is(err, ErrFull) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("%v", err)
	}
	check(t, s, positionAt(1), m)
	s.commit = (*bolt.Tx).Commit
	checkpoint(t, s, positionAt(2), changes...)
	m.apply(changes)
	check(t, s, positionAt(2), m)
}

// The last sync of a commit fails after the meta page was replaced: the caller
// receives it, and the store goes on from what bbolt goes on from.
func TestCommitStoredAndFails(t *testing.T) {
	_, s, m, changes := half(t)
	defer s.Abandon()
	s.commit = func(tx *bolt.Tx) error { return errors.Join(tx.Commit(), syscall.EIO) }
	if err := s.Checkpoint(positionAt(2), changes); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	m.apply(changes)
	check(t, s, positionAt(2), m)
	s.commit = (*bolt.Tx).Commit
	checkpoint(t, s, positionAt(3), changes...)
	check(t, s, positionAt(3), m)
}

// A panic in bbolt ends the store, not the process; the file is let go.
func TestCommitPanics(t *testing.T) {
	for name, commit := range map[string]func(*bolt.Tx) error{
		"panic":             func(*bolt.Tx) error { panic("page 7: assertion failed") },
		"panic after close": func(tx *bolt.Tx) error { panic(tx.Rollback()) },
	} {
		t.Run(name, func(t *testing.T) {
			o, s, m, changes := half(t)
			s.commit = commit
			for range 2 {
				if err := s.Checkpoint(positionAt(2), changes); !errors.Is(err, ErrDamaged) {
					t.Fatal(err)
				}
			}
			if _, err := s.Load(address("a")); !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			s = mustOpen(t, o)
			defer s.Abandon()
			check(t, s, positionAt(1), m)
		})
	}
}

// Loads during checkpoints see a ledger before or after, never between.
func TestLoadsMeetCheckpoints(t *testing.T) {
	s := mustOpen(t, options(t))
	defer s.Abandon()
	version := func(v int) []Change {
		c := Change{Address: address("a"), Replace: v%7 == 0}
		for i := range 3 {
			c.Rows = append(c.Rows, row(fmt.Sprint("r", i), fmt.Sprint(v)))
		}
		return []Change{c, {Address: address(fmt.Sprint("s", v%50)), Rows: []compaction.Row{{Name: "x", Data: make([]byte, 3000)}}}}
	}
	checkpoint(t, s, positionAt(1), version(0)...)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				rows, err := s.Load(address("a"))
				if err != nil || len(rows) != 3 || string(rows[0].Data) != string(rows[1].Data) || string(rows[1].Data) != string(rows[2].Data) {
					t.Errorf("%v, %v", rows, err)
					return
				}
				if err := s.Each(func(events.Address, []compaction.Row) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for v := range 200 {
		checkpoint(t, s, positionAt(uint64(v+2)), version(v)...)
	}
	close(done)
	wg.Wait()
}
