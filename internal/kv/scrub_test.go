package kv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"compactd/internal/compaction"
)

// E8: after a ledger was dropped its bytes are still in the file, in pages that
// bbolt no longer uses. After Scrub they are not, and everything else is there,
// also for the next process.
func TestScrub(t *testing.T) {
	const canary = "c4n4ry-0f-4-f0rg0tt3n-s3ss10n"
	o := options(t)
	s := mustOpen(t, o)
	want := model{}
	for round := range 20 { // pages move with every checkpoint
		var changes []Change
		for i := range 30 {
			a := address(fmt.Sprintf("s-%d", i))
			data := strings.Repeat(fmt.Sprintf("row %d of round %d ", i, round), 20+200*(i%3))
			changes = append(changes, Change{Address: a, Rows: []compaction.Row{row("h", data)}})
			want[a] = map[string]string{"h": data}
		}
		changes = append(changes, Change{Address: address("s-7-gone"), Rows: []compaction.Row{row(fmt.Sprintf("e%d", round), strings.Repeat(canary, 300))}})
		checkpoint(t, s, positionAt(uint64(round+1)), changes...)
	}
	checkpoint(t, s, positionAt(50), Change{Address: address("s-7-gone"), Drop: true})
	holds := func() bool {
		data, err := os.ReadFile(o.Path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(data, []byte(canary)) || bytes.Contains(data, []byte("s-7-gone"))
	}
	if !holds() {
		t.Fatal("the dropped ledger left nothing behind: the test is blind")
	}
	if err := s.Scrub(); err != nil {
		t.Fatal(err)
	}
	if holds() {
		t.Error("the file still holds the ledger that was dropped")
	}
	check(t, s, positionAt(50), want)
	checkpoint(t, s, positionAt(51), Change{Address: address("later"), Rows: []compaction.Row{row("h", "later")}})
	want[address("later")] = map[string]string{"h": "later"}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	check(t, s, positionAt(51), want)
	s.Abandon()
	if err := s.Scrub(); !errors.Is(err, ErrClosed) {
		t.Errorf("scrub of a closed store: %v", err)
	}
}

// The process may crash anywhere in Scrub: what it overwrites belongs to nothing.
func TestScrubHalfWay(t *testing.T) {
	o := options(t)
	s := mustOpen(t, o)
	a := address("kept")
	for i := range 40 {
		checkpoint(t, s, positionAt(uint64(i+1)), Change{Address: a, Rows: []compaction.Row{row("h", strings.Repeat("kept ", i*100))}})
	}
	if err := scrub(s.file); err != nil { // all it does, without the end of it
		t.Fatal(err)
	}
	s.Abandon()
	s = mustOpen(t, o)
	defer s.Abandon()
	check(t, s, positionAt(40), model{a: {"h": strings.Repeat("kept ", 3900)}})
}

// Quarantined files go with a session.
func TestRemoveQuarantined(t *testing.T) {
	o := options(t)
	for range 2 {
		if _, err := mustOpen(t, o).Discard(); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{2, 0} {
		if n, err := RemoveQuarantined(o.Path); n != want || err != nil {
			t.Errorf("removed %d, %v; want %d", n, err, want)
		}
	}
}

// The file of another partition is removed where sessions were erased, and the caller receives why.
func TestEraseOtherPartition(t *testing.T) {
	o := options(t)
	s := mustOpen(t, o)
	checkpoint(t, s, positionAt(1), Change{Address: address("kept"), Rows: []compaction.Row{row("h", "kept")}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := o
	other.Partition = (o.Partition + 1) % o.Partitions
	bad, err := EraseUpTo(other, 1)
	if err != nil || bad == nil || !errors.Is(bad.Reason, ErrOtherPartition) {
		t.Errorf("%+v, %v", bad, err)
	}
	if _, err := os.Stat(o.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

// Quarantined files go too where the file itself is gone, and nothing of a file in
// use.
func TestRemove(t *testing.T) {
	o := options(t)
	for name, remove := range map[string]func() error{
		"remove": func() error { return Remove(o.Path) }, "forget": func() error { _, err := EraseUpTo(o, 1); return err },
	} {
		if _, err := mustOpen(t, o).Discard(); err != nil {
			t.Fatal(err)
		}
		if err := remove(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n, err := RemoveQuarantined(o.Path); n != 0 || err != nil {
			t.Errorf("%s left %d quarantined files; %v", name, n, err)
		}
	}
	s := mustOpen(t, o)
	if err := Remove(o.Path); !errors.Is(err, ErrInUse) {
		t.Errorf("remove of a file in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Remove(o.Path); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(o.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

// A state that is read while its pages go out of use is not overwritten: names are
// listed from one, while checkpoints and scrubs go on.
func TestScrubWhileListed(t *testing.T) {
	s := mustOpen(t, options(t))
	defer s.Abandon()
	done := make(chan error, 1)
	go func() {
		var err error
		for range 60 {
			var changes []Change
			for i := range 40 {
				changes = append(changes, Change{Address: address(fmt.Sprintf("s-%02d", i)), Rows: []compaction.Row{row("h", strings.Repeat("x", 3000))}})
			}
			if err = errors.Join(s.Checkpoint(positionAt(s.Position().Cursor+1), changes), s.Scrub()); err != nil {
				break
			}
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
		if _, err := s.List("default", "", 500); err != nil {
			t.Fatal(err)
		}
	}
}
