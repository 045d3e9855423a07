package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"compactd/internal/compaction"
)

// A copy is the ledgers of one checkpoint, whatever is written meanwhile, and opens
// on another machine, though the file itself would not.
func TestCopy(t *testing.T) {
	o := options(t)
	s := mustOpen(t, o)
	s.head.clean = false // no syncs, for speed
	r := rand.New(rand.NewPCG(2, 2))
	m, states := model{}, map[uint64]string{}
	write := func(cursor uint64) {
		changes := drawChanges(r, 60)
		m.apply(changes)
		states[cursor] = m.hash(positionAt(cursor))
		checkpoint(t, s, positionAt(cursor), changes...)
	}
	write(1)
	const copies = 20
	other := filepath.Join(t.TempDir(), "other")
	var wg sync.WaitGroup
	var positions []Position
	wg.Go(func() {
		for i := range copies {
			pos, err := s.Copy(t.Context(), fmt.Sprint(other, i))
			if err != nil {
				t.Error(err)
			}
			positions = append(positions, pos)
		}
	})
	for cursor := uint64(2); cursor <= 60; cursor++ {
		write(cursor)
	}
	wg.Wait()
	s.Abandon()
	for i, pos := range positions {
		c := o
		c.Path, c.BootID = fmt.Sprint(other, i), "another boot"
		got := mustOpen(t, c)
		if h := hashOf(t, got); got.Position() != pos || h != states[pos.Cursor] {
			t.Errorf("copy %d is at %d, reported %d; it holds another state: %t", i, got.Position().Cursor, pos.Cursor, h != states[pos.Cursor])
		}
		got.Abandon()
	}
	o.BootID = "another boot"
	if _, set, err := Open(o); err != nil || set == nil || !errors.Is(set.Reason, ErrOtherBoot) {
		t.Errorf("the file itself: %+v, %v; this test is blind", set, err)
	}
}

// hashOf is the state of a store, as the model hashes it.
func hashOf(t *testing.T, s *Store) string {
	t.Helper()
	got, err := dump(s)
	if err != nil {
		t.Fatal(err)
	}
	return got.hash(s.Position())
}

// A copy that fails leaves no file: a store that is closed or damaged, a call
// whose time is over, a directory that is missing.
func TestCopyFails(t *testing.T) {
	o := options(t)
	s := mustOpen(t, o)
	checkpoint(t, s, positionAt(1), Change{Address: address("a"), Rows: []compaction.Row{row("head", "A")}})
	path := filepath.Join(t.TempDir(), "copy")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Copy(ended, path); !errors.Is(err, context.Canceled) {
		t.Errorf("over: %v", err)
	}
	if _, err := s.Copy(t.Context(), filepath.Join(path, "no", "directory")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := s.Copy(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 2*pageSize + 64; at < len(data); at += 64 {
		if _, err := s.file.WriteAt([]byte{data[at] ^ 0x40}, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Copy(t.Context(), path); !errors.Is(err, ErrDamaged) {
		t.Errorf("damaged: %v", err)
	}
	s.Abandon()
	if _, err := s.Copy(t.Context(), path); err == nil {
		t.Error("closed: no error")
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A system that does not name its boot has copies all the same: the process that wrote a file trusts it.
func TestCopyWithoutBootID(t *testing.T) {
	o := options(t)
	if o.BootID = bootID(filepath.Join(t.TempDir(), "absent")); o.BootID == "" {
		t.Fatal("the boot has no name")
	}
	s := mustOpen(t, o)
	defer s.Abandon()
	checkpoint(t, s, positionAt(1))
	if _, err := s.Copy(t.Context(), o.Path+".copy"); err != nil {
		t.Error(err)
	}
}
